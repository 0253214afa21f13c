"""What the tests of two towers share: the golden files of `tests/golden/towers`."""

import keras
import numpy as np
import safetensors.numpy

from keras_vit import from_checkpoint
from tests.checkpoints.helpers import GOLDEN

TOWERS = GOLDEN.parent / "towers"


def file_in(case):
    return next((TOWERS / case).glob("checkpoint.*"))


def arrays_in(case):
    path = file_in(case)
    return dict(np.load(path)) if path.suffix == ".npz" else safetensors.numpy.load_file(path)


def io_in(case):
    return dict(np.load(TOWERS / case / "io.npz"))


def both(case, **options):
    """Returns both towers of a golden file."""
    return from_checkpoint(file_in(case), part="both", **options)


def pixels(image, x):
    """Returns the pixels that a model's first layer turns into these values."""
    rescale = image.get_layer("rescale")
    return ((x * np.array(rescale.std) + np.array(rescale.mean)) * 255).astype("float32")


def answers(model, io):
    """Returns what two towers answer to the inputs of a golden file, by the names of its answers."""
    image, text = model.get_layer("image"), model.get_layer("text")
    inputs = {"images": pixels(image, io["images_nhwc"]), "texts": io["tokens"].astype("int32")}
    tokens = keras.Model(text.input, text.get_layer("norm").output)
    found = {
        "image_embedding": image(inputs["images"], training=False),
        "text_embedding": text(inputs["texts"], training=False),
        "text_tokens_output": tokens(inputs["texts"], training=False),
        "logits_per_image": model(inputs, training=False),
    }
    found = {name: keras.ops.convert_to_numpy(array).astype("float32") for name, array in found.items()}
    for name in ("image", "text"):
        array = found[f"{name}_embedding"]
        found[f"{name}_features"] = array / np.linalg.norm(array, axis=-1, keepdims=True)
    return found
