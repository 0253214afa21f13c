"""A segmenter of what texts say: an image tower, a text tower, and a decoder of masks."""

import math
from collections.abc import Sequence

import keras

from keras_vit.layers import FiLMDecoder
from keras_vit.layers.functional import Model

PARTS = ("image", "text", "decoder")  # its nested models, and its last layer


def mask_decoder(*, blocks, channels, grid, dtype=None, **options):
    """Builds the decoder of CLIPSeg (arXiv:2112.10003) alone, as the layer `decoder`; the weights' paths are public.

    Args:
        blocks: Number of blocks whose tokens it takes.
        channels: Channels of a token.
        grid: `(rows, columns)` of the patches.
        dtype: Precision policy of the layer.
        **options: Other arguments of `FiLMDecoder`.

    Returns:
        A functional `keras.Model` from a list of tokens, `(batch, 1 + patches, channels)`, and the conditions,
        `(conditions, units)`, to logits of masks.
    """
    decoder = FiLMDecoder(grid, name=PARTS[2], dtype=dtype, **options)
    tokens = [keras.Input((1 + math.prod(grid), channels)) for _ in range(blocks)]
    inputs = [*tokens, keras.Input((decoder.units,))]
    return Model(inputs, decoder(inputs), name="masks")


def open_segmenter(image: keras.Model, text: keras.Model, decoder: FiLMDecoder, blocks: Sequence[int]) -> keras.Model:
    """Joins towers and a decoder. They are `image` and `text`, nested models, and the layer `decoder`.

    Args:
        image: A model from images to embeddings, such as CLIP's image tower with its projection.
        text: A model from `text_tower` to embeddings of the same width.
        decoder: A decoder that is not built yet.
        blocks: Numbers of the blocks whose tokens it takes, from 0.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "texts": (texts, length)}` to
        logits of masks, float32 `(batch, height, width, texts)`. Called directly, it takes any two numbers of images
        and texts. Its layer `image` also returns the tokens of the blocks, after the embedding.
    """
    tokens = [image.get_layer(f"block_{i}").output for i in blocks]
    image = Model(image.inputs[0], [image.outputs[0], *tokens], name=PARTS[0])
    text = Model(text.inputs[0], text.outputs[0], name=PARTS[1])
    images = keras.Input(image.input_shape[1:], dtype=image.inputs[0].dtype, name="images")
    texts = keras.Input(text.input_shape[1:], dtype=text.inputs[0].dtype, name="texts")
    _, *tokens = image(images)
    return Model({"images": images, "texts": texts}, decoder([*tokens, text(texts)]), name="open_segmenter")


def is_open_segmenter(model):
    """Returns whether a model segments what texts say."""
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    return set(PARTS) <= set(layers) and isinstance(layers[PARTS[2]], FiLMDecoder)
