"""Keras's own `.keras` files of this package's models: our weight names, with the architecture in the file."""

import contextlib
import math
import warnings

import keras
import numpy as np

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.inputs import PROJECTION
from keras_vit.checkpoints.tables import SAME, Format, Row
from keras_vit.layers import MergingBlock
from keras_vit.models.backbone import BEFORE_HEAD, HEADS, backbone, image_tower, variables_of
from keras_vit.models.kinds import GIVES
from keras_vit.models.outputs import labels_beside
from keras_vit.models.vilt import WORDS_METADATA
from keras_vit.utils.packed import check_packed

JOBS = "jobs"  # names of the jobs of a head for several
HEAD_METADATA = ("temperature", "thresholds", "unknown", JOBS, GIVES)  # metadata that belongs to a head
ROWS = (Row("{path}", "{path}", SAME),)
SAVED = "the saved model"
# Patterns of names of tasks' own layers.
OF_TASKS = ("queries", "masks", "features", "places", "logits", "job_[^/]*", "texture_[^/]*")


@contextlib.contextmanager
def open_keras(path):
    """Opens a `.keras` file with a model from `keras_vit.vit` or `keras_vit.vilt`; see `read.open_checkpoint`."""
    check_packed(path)
    whole = image_tower(keras.models.load_model(path, compile=False))  # its loss and optimizer do not matter here
    model = backbone(whole)
    if model is not whole:
        others = [layer.name for layer in whole.layers if layer is not model]
        warnings.warn(
            f"Only the ViT {model.name!r} of {str(path)!r} is loaded. Left out: {', '.join(others)}.", stacklevel=2
        )
    if len(model.outputs) > 1 and not isinstance(model.output, dict):  # with tokens for a decoder, after the head's
        model = keras.Model(model.inputs, model.outputs[0], name=model.name)
    arguments, variables = arguments_of(model, words=True), variables_of(model)
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    if any(isinstance(layer, MergingBlock) for layer in model.layers):
        warnings.warn(
            f"{str(path)!r} merges tokens, which this leaves out: call `merge_tokens` again, or load the file with "
            "keras.models.load_model.",
            stacklevel=2,
        )
    sides = [arguments[name] for name in ("tubelet",) if name in arguments] + [*arguments["patch_size"]]
    values, width = shapes[PROJECTION]
    shapes[PROJECTION] = (*sides, values // math.prod(sides), width)

    def read(name):
        return np.asarray(keras.ops.convert_to_numpy(variables[name]), "float32").reshape(shapes[name])

    metadata = getattr(model.get_layer("rescale"), "metadata", {})
    labels = metadata.get("labels") or list(labels_beside(path) or ())
    notes = {"model": arguments, "evaluation": metadata.get("evaluation"), "labels": labels}
    if "vocabulary" in arguments:
        notes |= {name: model.get_layer("words").metadata.get(name) for name in WORDS_METADATA}
    yield shapes, read, notes | {name: metadata.get(name) for name in ("name", "license", *HEAD_METADATA)}


def architecture(shapes, checkpoint):
    notes = checkpoint.notes
    names = ("num_heads", "block.gelu", "norm.epsilon", "mean", "evaluation")
    return dict(notes["model"]), notes.get("evaluation") or {}, dict.fromkeys(names, SAVED)


FORMAT = Format(
    name="keras",
    rows=ROWS,
    detect=lambda names: PROJECTION in names,
    architecture=architecture,
    head_names=rf"({'|'.join((*HEADS, *BEFORE_HEAD, *OF_TASKS))})/.*",
    resample="bicubic-antialias",
    resample_patches="bicubic-antialias",
)
