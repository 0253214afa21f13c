"""Models with published weights, by name."""

import functools
import inspect
import pathlib
import re
import warnings

from keras_vit import checks, models, variants
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.load import Assumption, from_checkpoint
from keras_vit.checkpoints.published import list_checkpoints, published
from keras_vit.checkpoints.read import RUN, SUFFIXES
from keras_vit.files import folder


def from_pretrained(name, **overrides):
    """Builds a model and fills it with trained weights: published ones are downloaded once and kept.

    Args:
        name: Such as `"B/16-augreg-i21k-i1k-384"`, see `list_checkpoints`; a recipe with weights that ship with the
            package, such as `"mnist"`; the directory of a run; or what else `from_checkpoint` takes.
        **overrides: As in `from_checkpoint`, such as `image_size` or `num_classes`.

    Returns:
        A model as from `keras_vit.vit`.

    Raises:
        ValueError: For an unknown name, with those spelled like it.
        ConnectionError: If the weights cannot be downloaded.
    """
    checks.path("name", name)
    return _filled(name, overrides)


def _filled(source, overrides):
    """Returns what `from_pretrained` does, in which a model's `name` may be given too."""
    place = _place(source)
    if place is not None:
        return from_checkpoint(place, **overrides)
    row = published(source)
    evaluation = {k: getattr(row, k) for k in ("resize", "crop_pct", "interpolation", "antialias")}
    about = {"name": row.name, "evaluation": evaluation, "licence": row.licence, **(overrides.get("metadata") or {})}
    given = {"mean": row.mean, "std": row.std, "sha256": row.sha256 or None}
    if not row.num_classes:  # a head that its authors left empty, and the layer before it, which vit_jax drops too
        given |= {"num_classes": 0, "head": "new", "representation_size": None}
    if overrides.get("channels", 3) != 3:  # the table's are of three
        del given["mean"], given["std"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Assumption)  # the table's models are known
        return from_checkpoint(row.source, **{**given, **overrides, "metadata": about})


def _place(source):
    """Returns the path or address that a source is, also if it names shipped weights; `None` if it is another name."""
    text, path = str(source), pathlib.Path(str(source)).expanduser()
    shipped = {file.stem: file for file in folder("saved_models").glob("*.keras")}
    if text in shipped and not (path / RUN).is_file():  # a run of that name comes first, as in `load_run`
        return shipped[text]
    is_path = path.suffix in SUFFIXES or path.exists() or ("/" in text and not re.match(r"[\w+]+/\d+(-|$)", text))
    return source if is_path or "://" in text else None


def _vit(variant="B/16", *, weights=None, **arguments):
    if weights is None:
        return models.vit(variant, **arguments)
    checks.path("weights", weights)
    source, place = str(weights), _place(weights)
    encoder, number, hybrid = variants.parse(variant)
    tags = [row.name.partition("-")[2] for row in list_checkpoints() if row.variant == variant]
    if place is None and source not in tags:
        raise ValueError(f"There are no published weights {source!r} of {variant}. {checks.near(source, tags)}")
    name = f"{variant}-{source}"
    model = _filled(name, arguments) if place is None else from_checkpoint(place, **arguments)
    found = arguments_of(model)
    wanted = {size: getattr(encoder, size) for size in variants.SIZES if getattr(encoder, size) is not None}
    wanted |= {"patch_size": (number, number)} if number else {"patch_size": (hybrid.patch_size,) * 2} if hybrid else {}
    wrong = [f"{k} {found[k]}" for k, v in wanted.items() if k not in arguments and found[k] != v]
    if variant is not None and getattr(found["stem"], "stages", None) != (hybrid.stages if hybrid else None):
        wrong.append("another stem")
    if wrong:
        raise ValueError(f"The weights {source!r} are not of a {variant}: they have {', '.join(wrong)}.")
    return model


def _with_weights(function):
    """Returns the signature and the docstring of `models.vit` with the argument `weights`."""
    signature = inspect.signature(function)
    weights = inspect.Parameter("weights", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*signature.parameters.values()]
    parameters.insert(1, weights)
    about = """        weights: Published weights of the variant, such as `"augreg-i21k-i1k-384"` (see
            `list_checkpoints`); a recipe's that ship with the package, such as `"mnist"`; or what `from_checkpoint`
            takes: a path, the directory of a run, an address. What is not given is then the checkpoint's.
"""
    before = "        image_size: "
    return signature.replace(parameters=parameters), function.__doc__.replace(before, about + before, 1)


vit = functools.wraps(models.vit)(_vit)
vit.__signature__, vit.__doc__ = _with_weights(models.vit)
