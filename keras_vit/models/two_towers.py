"""An image tower and a text tower in one model."""

import keras
import numpy as np

from keras_vit.layers import Rescale, Similarity
from keras_vit.layers.functional import Model
from keras_vit.layers.heads.similarity import SCALE
from keras_vit.models.backbone import outputs_of
from keras_vit.models.kinds import note
from keras_vit.utils import checks

RANKS = {"image": (4, 5), "text": (2,)}  # axes of each tower's input: of images, or of clips


def two_towers(
    image: keras.Model, text: keras.Model, *, scale: float = SCALE, bias: float | None = None, pairs: bool = False
) -> keras.Model:
    """Joins an image tower and a text tower that embed in one space, as CLIP and SigLIP do.

    The towers are the nested models `image` and `text`: `model.get_layer("text")` embeds texts alone. They share their
    layers and weights with the models that are passed. A head of zeros, as `vit` begins with, is drawn at random here:
    vectors of zeros have no direction, and their gradients no bound.

    Args:
        image: A model from images to vectors, such as `vit(..., num_classes=512)`; or from clips, such as
            `video_vit(..., num_classes=512)`.
        text: A model from ids of words to vectors of the same width, such as `text_tower(..., projection=512)`.
        scale: First value of the logarithm of the scale; see `Similarity`. Defaults to `ln(1 / 0.07)`, CLIP's.
        bias: First value of the bias, such as SigLIP's -10; `None` for no bias. Defaults to `None`.
        pairs: Whether to return each image with its own text, `(batch, 2, channels)`, instead of logits of all images
            with all texts; see `Similarity`. Defaults to `False`.

    Returns:
        A functional `keras.Model` from `{"images": (images, height, width, channels), "texts": (texts, length)}` to
        logits `(images, texts)`, float32. Clips are `"images"` of an axis more. Called directly, it takes any two
        numbers of images and texts, but for pairs.

    Raises:
        ValueError: For models of other inputs or outputs, or of two widths.

    Example:

    >>> image = keras_vit.vit("Ti/16", num_classes=64)
    >>> text = keras_vit.text_tower(vocabulary=100, length=12, width=64, depth=2, num_heads=4, end=1)
    >>> model = two_towers(image, text)
    >>> model({"images": keras.ops.ones((3, 224, 224, 3)), "texts": keras.ops.ones((5, 12), "int32")}).shape
    (3, 5)
    """
    towers = {name: _tower(name, model) for name, model in (("image", image), ("text", text))}
    widths = [tower.output_shape[1] for tower in towers.values()]
    if widths[0] != widths[1]:
        raise ValueError(
            f"Both towers must give vectors of one width. Received: {widths[0]} of images and {widths[1]} of texts"
        )
    similarity = Similarity(scale, bias, pairs, name="similarity")
    _draw(towers["image"].layers[-1])
    if any(isinstance(layer, Rescale) and layer.name == "rescale" for layer in towers["image"].layers):
        note(towers["image"], "embeddings")
    inputs = {
        f"{name}s": keras.Input(tower.input_shape[1:], dtype=tower.inputs[0].dtype, name=f"{name}s")
        for name, tower in towers.items()
    }
    embedded = [tower(x) for tower, x in zip(towers.values(), inputs.values())]
    return Model(inputs, similarity(embedded), name="two_towers")


def _draw(head):
    """Draws the kernel of a dense layer, if it is zero."""
    if isinstance(head, keras.layers.Dense) and not np.any(keras.ops.convert_to_numpy(head.kernel)):
        head.kernel.assign(keras.initializers.GlorotUniform()(head.kernel.shape))


def _tower(name, model):
    """Returns a model of the same layers under a tower's name; raises ValueError if it is none."""
    shapes = [tensor.shape for side in (getattr(model, "inputs", None), outputs_of(model)) for tensor in side or ()]
    if [len(shape) for shape in shapes] not in [[rank, 2] for rank in RANKS[name]]:
        raise ValueError(
            f"`{name}` must be a functional Keras model from {name}s, a tensor of {RANKS[name][0]} axes, to vectors "
            f"(batch, width). Received: {checks.shown(getattr(model, 'name', model))}"
            + (f" with shapes {shapes}" if shapes else "")
        )
    return Model(model.inputs[0], model.outputs[0], name=name)
