"""Heads of weights with an output at each place of the image: whether a model has the same one, and its weights."""

import re

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.describe import class_names, describe, recognize
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.own import JOBS
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.formats import huggingface_yolos, rf_detr
from keras_vit.checkpoints.match import matching
from keras_vit.models.inputs import metadata_of

TEXTURE = "texture_"  # with which those begin that read a reference image
PARTS = ("head/", "queries/", "masks/", "job_", TEXTURE)  # with which the paths of a head's weights begin


def head_in(source):
    """Returns what `models.map_heads.with_head` takes of the head in some weights, or `None` without such a head.

    Args:
        source: As `fetch` takes it.
    """
    with open_checkpoint(fetch(source)) as checkpoint:
        return describe(checkpoint).arguments.get("maps")


def load_head(model, source, classes):
    """Loads a head if the weights are of such a model with the same one and the same classes.

    Args:
        model: The model, whose head's weights begin with `head/`.
        source: As `fetch` takes it.
        classes: Names of the classes, a tuple.

    Returns:
        Whether it did, or `None` if the weights have no head for these classes.
    """
    head = {variable.path: variable for variable in model.weights if variable.path.startswith(PARTS)}
    with open_checkpoint(fetch(source)) as checkpoint:
        description = describe(checkpoint)
        form, names, encoder = description.form, description.names, description.arguments
        if encoder.get("maps", {}).get("kind") in ("boxes", "segments"):
            return _load_sets(model, head, description, classes)
        source_classes = names_of(checkpoint, len(classes))
        unnamed = source_classes == () and form is huggingface_yolos.FORMAT  # whose shapes alone decide
        if (checkpoint.notes or {}).get(JOBS) != metadata_of(model).get(JOBS):
            return None
        dense = encoder.get("pooling") == "none" or encoder.get("maps")
        if not dense or not (unnamed or source_classes == classes):
            return None
        head_tensors = {name for name in names if re.match(form.head_names, name) and not name.startswith("pre_logits")}
        head_tensors = {name for name in head_tensors if not re.fullmatch(form.ignored, name)}
        if not head_tensors:
            return None
        if not any(name.startswith(TEXTURE) for name in head_tensors):  # a model without references: these are new
            head = {path: variable for path, variable in head.items() if not path.startswith(TEXTURE)}
        placeholders = form.placeholders(arguments_of(model, words=True))
        rows = {path: next(matching(form, path, placeholders), None) for path in head}
        used, arrays = {name for row in rows.values() if row for name in row.theirs}, {}
        if None not in rows.values() and head_tensors <= used <= set(names):
            for path, row in rows.items():
                [arrays[path]] = row.form.read([checkpoint.array(names[name]) for name in row.theirs], None)
        if {path: array.shape for path, array in arrays.items()} != {path: tuple(v.shape) for path, v in head.items()}:
            return None if unnamed else False
    for path, array in arrays.items():
        head[path].assign(array)
    return True


def names_of(checkpoint, count):
    """Returns the names of a checkpoint's classes, made different where two are the same, as COCO's `"N/A"`."""
    return different(class_names(checkpoint, count).get("labels", ()))


def different(names):
    """Returns names as a tuple; to one that stands there before, its number is added."""
    return tuple(name if name not in names[:i] else f"{name} {i}" for i, name in enumerate(names))


def _load_sets(model, head, description, classes):
    """Loads a head of boxes or segments in a set, but for layers of other classes or missing masks; see `load_head`."""
    checkpoint, form, names, maps = (*description.source[:3], description.arguments["maps"])
    source_classes = classes_of(maps, checkpoint)
    layer, same, arrays = model.get_layer("head"), source_classes == classes, {}
    placeholders = form.placeholders(arguments_of(model, words=True))
    for path, variable in head.items():
        if path.startswith("masks/") and not maps.get("masks"):  # of a detector without masks: they are new
            same = False
            continue
        row = next(matching(form, path, placeholders), None)
        if row is None or not set(row.theirs) <= set(names):
            return False
        parts = row.form.read([checkpoint.array(names[name]) for name in row.theirs], None)
        array = parts[row.ours.index(path)]
        if path in ("head/references", "head/query"):  # the first queries of the first groups
            array = array.reshape(maps["groups"], maps["queries"], -1)[: layer.groups, : layer.queries]
            array = array.reshape(-1, array.shape[-1])
        if path == "queries/tokens":
            array = array[:, : layer.queries]
        if "/class/" in path:
            if not same:
                continue
            array = array if maps.get("kept") is None else array[..., list(maps["kept"])]
        if array.shape != tuple(variable.shape):
            return False
        arrays[path] = array
    for path, array in arrays.items():
        head[path].assign(array)
    return True if same else None


def classes_of(maps, checkpoint=None):
    """Returns the names of the classes of boxes or segments, a tuple; their numbers where the source has no names.

    Args:
        maps: The options of the head, as `head_in` returns them.
        checkpoint: The open checkpoint of them, where they do not hold the names.
    """
    kept = maps.get("kept")
    count = maps["units"] if kept is None else len(kept)
    stated = maps.get("names") or (names_of(checkpoint, count) if checkpoint is not None else ())
    return different(stated or tuple(map(str, range(count))))


def detector_in(source):
    """Returns the kind of a detector's head, a key of `Detect.heads`, the names of its classes, and its most boxes.

    Args:
        source: As `fetch` takes it.

    Raises:
        ValueError: For weights of another kind of model, or without the heads.
    """
    with open_checkpoint(fetch(source)) as checkpoint:
        form, names = recognize(checkpoint)
        if form is rf_detr.FORMAT:
            maps = describe(checkpoint).arguments["maps"]
            return "deformable", classes_of(maps), maps["queries"]
        return "tokens", *_yolos_in(checkpoint, form, names, source)


def _yolos_in(checkpoint, form, names, source):
    """Returns the names of a YOLOS's classes, a tuple, and the number of its boxes."""
    if form is not huggingface_yolos.FORMAT:
        raise ValueError(f"{str(source)!r} must be weights of YOLOS or RF-DETR. Received: a model of {form.name}")
    missing = [name for name in huggingface_yolos.SIZES if name not in names]
    if missing:
        raise ValueError(f"{str(source)!r} must have YOLOS's heads. Received: a file without {missing[0]}")
    classes, tokens = (checkpoint.shape(names[name]) for name in huggingface_yolos.SIZES)
    count, most = classes[0] - 1, tokens[1]  # the last logit is that of no object
    return names_of(checkpoint, count) or tuple(map(str, range(count))), most
