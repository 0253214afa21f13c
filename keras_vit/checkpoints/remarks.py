"""What the reader of a checkpoint warns of."""

from keras_vit.checkpoints.describe import FUNCTION, of_stem
from keras_vit.checkpoints.tables import Assumed, Otherwise, same
from keras_vit.models.options import flat, written
from keras_vit.utils.warned import warn


class Assumption(UserWarning):
    """A file does not show all that its model computes."""


def warn_of_assumptions(source, arguments, origins):
    """Warns of arguments that no tensor shows and that differ between published files."""
    values = flat(arguments)
    assumed = [f"{written(k, values[k])} ({why})" for k, why in origins.items() if isinstance(why, Assumed)]
    if assumed:
        warn(
            f"{str(source)!r} does not show all that its model computes. Assumed: {', '.join(assumed)}. "
            "To choose otherwise, pass these arguments or put the source's config.json next to the file.",
            Assumption,
        )


def warn_of_preparation(source, origins):
    """Warns if the source prepares images as no model of one size can."""
    for why in origins.values():
        if isinstance(why, Otherwise):
            warn(f"{str(source)!r}: {why}", Assumption)


def warn_of_differences(source, source_arguments, own, origins):
    """Warns if a model computes another function than the source of its weights."""
    source_values, model_values = (
        {k: flat(a)[k] for k in FUNCTION} | of_stem(a["stem"]) for a in (source_arguments, own)
    )
    unclear = {"mean", "std"} if isinstance(origins.get("mean"), Assumed) else set()
    names = [
        name
        for name in model_values
        if source_values.get(name) is not None and f"'{model_values[name]}'" not in origins.get(name, "")
    ]
    names = [name for name in names if name not in unclear]
    other = [
        f"{written(k, source_values[k])} (the model: {model_values[k]!r})"
        for k in names
        if not same(source_values[k], model_values[k])
    ]
    if other:
        warn(
            f"The weights of {str(source)!r} fit, but belong to a model with {', '.join(other)}. "
            "`from_checkpoint` builds that one."
        )
