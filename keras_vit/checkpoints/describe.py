"""What a checkpoint is: its format, the architecture that it describes, and what it tells of its source."""

import inspect

from keras_vit.checkpoints import google, huggingface, own, timm
from keras_vit.checkpoints.tables import listing
from keras_vit.labels import fitting
from keras_vit.layers import ResNetStem
from keras_vit.models import vit

FORMATS = {module.FORMAT.name: module.FORMAT for module in (google, timm, huggingface, own)}
NOTES = "the file's own notes"
FUNCTION = ("gelu", "epsilon", "mean", "std", "pooling", "final_norm", "num_heads")  # what weights alone do not show
NOTED = (*FUNCTION, "image_size")  # what a file's own notes may add to its tensors
STEM = ("epsilon", "standardize")  # likewise of a `ResNetStem`


def recognise(checkpoint, name="auto"):
    """Returns the `Format` of a checkpoint, and where each canonical name is found in it."""
    found = [form for form in FORMATS.values() if form.detect(checkpoint.shapes)]
    form = FORMATS[name] if name != "auto" else found[0] if found else None
    if form not in found:
        known = name if form else ", ".join(name for name, form in FORMATS.items() if form.express)
        raise ValueError(
            f"{str(checkpoint.path)!r} is no Vision Transformer of {known}. "
            f"It has {listing(checkpoint.shapes) or 'no tensors'}"
        )
    return form, form.canonical(checkpoint.shapes)


def describe(checkpoint, form, names):
    """Returns what `Format.architecture` does, with what `save_checkpoint` noted in the file before all else."""
    shapes = {name: checkpoint.shape(place) for name, place in names.items()}
    defaults = {n: p.default for n, p in inspect.signature(vit).parameters.items()}
    try:
        arguments, evaluation, origins = form.architecture(shapes, checkpoint)
        arguments = {**{name: defaults[name] for name in FUNCTION}, "stem": None, **arguments}
        noted = checkpoint.notes.get("arguments", {})
        if noted:
            arguments |= {k: tuple(v) if isinstance(v, list) else v for k, v in noted.items() if k in NOTED}
            evaluation = checkpoint.notes.get("evaluation") or evaluation
            origins = dict.fromkeys(origins, NOTES)
        if noted.get("stem") and arguments["stem"] is not None:
            arguments["stem"] = ResNetStem.from_config({**arguments["stem"].get_config(), **noted["stem"]})
        evaluation = dict(evaluation)
    except (AttributeError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError(
            f"What is said of {str(checkpoint.path)!r} beside its weights is none of {form.name}'s: {error}"
        ) from None
    return arguments, evaluation, origins


def class_names(checkpoint, count):
    """Returns the names of the classes that a source tells, as `labels` of a model's metadata; `{}` if it tells none.

    From `save_checkpoint`'s notes, transformers' `id2label` or timm's `label_names`.
    """
    config = checkpoint.config
    names = checkpoint.notes.get("labels") or config.get("label_names") or config.get("id2label") or ()
    if isinstance(names, dict):
        names = [names.get(str(i)) for i in range(count or 0)]
    names = fitting(names, count)
    return {"labels": names} if names and names[0] != "LABEL_0" else {}


def credit(checkpoint):
    """Returns the name and the licence of the weights in a model's own file, as its metadata has them."""
    return {name: checkpoint.notes[name] for name in ("name", "licence") if checkpoint.notes.get(name)}


def of_stem(stem):
    """Returns what the weights of a `ResNetStem` do not show."""
    return {f"the stem's {name}": getattr(stem, name) for name in STEM} if isinstance(stem, ResNetStem) else {}
