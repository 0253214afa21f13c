"""A detector of what texts name: an image tower, a text tower, and heads on patches."""

import math

import keras

from keras_vit.layers import Objectness, PlaceBoxes, QueryLogits, TopBoxes
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.functional import Model
from keras_vit.models import anatomy
from keras_vit.models.backbone import fill

PARTS = ("image", "text", "heads")  # its nested models


def detection_heads(*, width, grid, units, length, objectness=False, epsilon=1e-5, dtype=None):
    """Builds the heads of OWL-ViT (arXiv:2205.06230) or, with `objectness`, of OWLv2 (arXiv:2306.09683).

    The layers are called `class_token, patch_tokens, product, features, places, [objectness], logits`. Their names and
    weight paths are public.

    Args:
        width: Channels of a token.
        grid: `(rows, columns)` of the patches.
        units: Channels of a query.
        length: Number of ids in every text.
        objectness: Whether there is a head that says if a box has an object.
        epsilon: Epsilon of the normalization.
        dtype: Precision policy of every layer.

    Returns:
        A functional `keras.Model` from a dictionary of `tokens`, `(batch, 1 + patches, width)`, `queries`, `(queries,
        units)` and `texts`, `(queries, length)`, to the outputs of `open_detector`.
    """
    dtype = keras.dtype_policies.get(dtype)
    tokens = keras.Input((1 + math.prod(grid), width), name="tokens")
    queries, texts = keras.Input((units,), name="queries"), keras.Input((length,), dtype="int32", name="texts")
    crop = keras.layers.Cropping1D
    pair = [
        crop((0, math.prod(grid)), name="class_token", dtype=dtype)(tokens),  # (batch, 1, width)
        crop((1, 0), name="patch_tokens", dtype=dtype)(tokens),  # (batch, patches, width)
    ]
    x = keras.layers.Multiply(name="product", dtype=dtype)(pair)
    x = norm("features", rms_norm=False, epsilon=epsilon, dtype=dtype)(x)
    outputs = {"boxes": PlaceBoxes(grid, name="places", dtype=dtype)(x)}
    outputs |= {"objectness": Objectness(name="objectness", dtype=dtype)(x)} if objectness else {}
    outputs["logits"] = QueryLogits(units, name="logits", dtype=dtype)([x, queries, texts])
    return Model({"tokens": tokens, "queries": queries, "texts": texts}, outputs, name=PARTS[2])


def open_detector(image, text, heads):
    """Joins towers and heads. They are the nested models `image`, `text` and `heads`, and share their weights.

    Args:
        image: A model from images to tokens, such as `vit(..., pooling="none", num_classes=0)`.
        text: A model from `text_tower`.
        heads: A model from `detection_heads`.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "texts": (texts, length)}` to a
        dictionary: `boxes`, float32 `(batch, patches, 4)`, top, left, bottom and right as shares of the image;
        `logits`, `(batch, patches, texts)`; of OWLv2 `objectness`, `(batch, patches)`. Called directly, it takes any
        two numbers of images and texts.
    """
    image, text = (Model(each.inputs[0], each.outputs[0], name=name) for each, name in zip((image, text), PARTS))
    images = keras.Input(image.input_shape[1:], dtype=image.inputs[0].dtype, name="images")
    texts = keras.Input(text.input_shape[1:], dtype=text.inputs[0].dtype, name="texts")
    outputs = heads({"tokens": image(images), "queries": text(texts), "texts": texts})
    return Model({"images": images, "texts": texts}, outputs, name="open_detector")


def is_open_detector(model):
    """Returns whether a model finds what texts name."""
    return set(PARTS) <= {layer.name for layer in getattr(model, "layers", ())}


def heads_for(image, text, **options):
    """Returns the arguments of `detection_heads` that the towers determine; `options` are added."""
    return {"grid": tuple(anatomy.grid(image)), "length": text.input_shape[1], **options}


def features_of(heads, tokens):
    """Returns the normalized products of patches and class token, from which all heads predict.

    Args:
        heads: A model from `detection_heads`.
        tokens: Tokens of images, `(batch, 1 + patches, width)`, an array or a symbolic tensor.
    """
    pair = [heads.get_layer(name)(tokens) for name in ("class_token", "patch_tokens")]
    return heads.get_layer("features")(heads.get_layer("product")(pair))


def of_classes(images, features, boxes, old, vectors, most, name="detector"):
    """Builds a detector of some classes: a model of images alone, with copies of all weights.

    Args:
        images: The symbolic input.
        features: The symbolic tensor that the heads take, as from `features_of`.
        boxes: The symbolic output of the layer `places`.
        old: The layer `logits` of queries that are an input, or of other classes.
        vectors: Embeddings of the classes, `(classes, units)`.
        most: Number of boxes of an image, at most one for each patch.
        name: Name of the model.

    Returns:
        A functional `keras.Model` from pixels to the output of its last layer, a `TopBoxes`.
    """
    head = QueryLogits(old.units, len(vectors), name="logits", dtype=old.dtype_policy)
    outputs = TopBoxes(min(most, boxes.shape[1]), name="boxes")([boxes, head(features)])
    head.set_weights([vectors.T, *old.get_weights()[1 if old.queries else 0 :]])
    shared = Model(images, outputs, name=name)
    return fill(keras.models.clone_model(shared), shared.get_weights())


def has_classes(model):
    """Returns whether a model is one of `of_classes`."""
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    kinds = {"places": PlaceBoxes, "logits": QueryLogits, "boxes": TopBoxes}
    return all(isinstance(layers.get(name), kind) for name, kind in kinds.items()) and bool(layers["logits"].queries)
