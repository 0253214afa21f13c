"""What the reader of a checkpoint warns of."""

from keras_vit.checkpoints.tables import Assumed, Otherwise
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
