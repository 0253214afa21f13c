"""What the tests of models that write share: the golden files of `tests/golden/captions`, and small random ones."""

import functools
import json
import pathlib
import warnings

import keras
import numpy as np
import safetensors.numpy

import keras_vit
from tests.checkpoints.helpers import benchmark, randomized

FOLDER = pathlib.Path(__file__).parent / "golden" / "captions"
CASES = ["vision_encoder_decoder", "trocr", "blip_captioning"]
SIZES = dict(vocabulary=30, length=12, width=16, depth=2, num_heads=4)
WAYS = {  # the columns of published decoders, and a language model
    "gpt2": dict(context_width=32),
    "projected": dict(context_width=32, project_context=True, positions="sinusoidal"),
    "trocr_base": dict(context_width=32, norm_order="post", norm_words=True, gelu="exact"),
    "trocr_small": dict(
        context_width=32, norm_order="post", norm_words=True, gelu="relu", positions="sinusoidal", pad=1,
        scale_words=True, tied=False,
    ),
    "blip": dict(
        context_width=32, norm_order="post", norm_words=True, gelu="exact", epsilon=1e-12, transform=True,
        logit_bias=True, masked_id=0,
    ),
    "language": dict(),
}  # fmt: skip


def io_in(case):
    return dict(np.load(FOLDER / case / "io.npz"))


def settings_in(case):
    return json.loads((FOLDER / case / "texts.json").read_text())


def arrays_in(case):
    return safetensors.numpy.load_file(FOLDER / case / "checkpoint.safetensors")


@functools.cache
def original(case):
    """Returns the model of a golden file, for all tests: none may change it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return keras_vit.from_checkpoint(FOLDER / case)


def images_of(model, io):
    return benchmark("golden_answers").pixels(model.get_layer("image"), io["images_nhwc"])


def marks_of(model):
    metadata = model.get_layer("text").get_layer("words").metadata
    return {name: metadata[name] for name in ("start", "end", "pad")}


def until(rows, end):
    """Returns ids as lists, up to the first end after the start."""
    rows = [list(map(int, row)) for row in rows]
    return [row[: row.index(end, 1) + 1] if end in row[1:] else row for row in rows]


def decoder(way="gpt2", **options):
    return randomized(keras_vit.text_decoder(**SIZES | WAYS[way] | options))


def small(way="gpt2", **options):
    """Returns a captioner with random weights, of images of 8 x 8 pixels."""
    image = keras_vit.vit("mu/4", image_size=8, pooling="none", num_classes=0)
    return keras_vit.captioner(randomized(image), decoder(way, **options), start=2, end=3, pad=1)


def numbers(array):
    return keras.ops.convert_to_numpy(array)
