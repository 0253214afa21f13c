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
        and texts; of a decoder with `pairs`, as many of both, and each image has one mask. Its layer `image` also
        returns the tokens of the blocks, after the embedding.
    """
    tokens = [image.get_layer(f"block_{i}").output for i in blocks]
    image = Model(image.inputs[0], [image.outputs[0], *tokens], name=PARTS[0])
    return joined(image, Model(text.inputs[0], text.outputs[0], name=PARTS[1]), decoder)


def joined(image, text, decoder):
    """Returns the segmenter of the nested models `image`, which returns an embedding and tokens, and `text`."""
    images = keras.Input(image.input_shape[1:], dtype=image.inputs[0].dtype, name="images")
    texts = keras.Input(text.input_shape[1:], dtype=text.inputs[0].dtype, name="texts")
    _, *tokens = image(images)
    return Model({"images": images, "texts": texts}, decoder([*tokens, text(texts)]), name="open_segmenter")


def with_pairs(model, pairs):
    """Returns a segmenter whose decoder has `pairs` as said: the model itself, or one of its towers and a new decoder.

    Args:
        model: A model as from `open_segmenter`.
        pairs: Whether each image has its own text, as in training, or all images have all texts.
    """
    image, text, decoder = map(model.get_layer, PARTS)
    if decoder.pairs == pairs:
        return model
    return joined(image, text, decoder_with_pairs(decoder, pairs))


def decoder_with_pairs(decoder, pairs):
    """Returns a decoder with the weights of another, whose `pairs` are as said."""
    if decoder.pairs == pairs:
        return decoder
    other = FiLMDecoder.from_config({**decoder.get_config(), "pairs": pairs})
    other.build([x.shape for x in decoder.input])
    other.set_weights(decoder.get_weights())
    return other


def needed(model):
    """Returns a segmenter without what no mask depends on: blocks above those of the decoder, and the embedding."""
    image, text, decoder = map(model.get_layer, PARTS)
    seen = Model(image.inputs[0], image.outputs[1:], name=PARTS[0])
    inputs = {name: keras.Input(x.shape[1:], dtype=x.dtype, name=name) for name, x in model.input.items()}
    tokens = seen(inputs["images"])
    tokens = tokens if isinstance(tokens, list) else [tokens]
    return Model(inputs, decoder([*tokens, text(inputs["texts"])]), name=model.name)


def is_open_segmenter(model):
    """Returns whether a model segments what texts say."""
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    return set(PARTS) <= set(layers) and isinstance(layers[PARTS[2]], FiLMDecoder)
