"""The towers of a model of images and texts, and what both become in their common space."""

from typing import NamedTuple

import keras
import numpy as np

from keras_vit.explain.embedding import unit, vectors_of
from keras_vit.models.backbone import TOWERS
from keras_vit.models.inputs import table_of
from keras_vit.text import Tokenizer, tokenizer
from keras_vit.text.tokenizer import listed
from keras_vit.traits import traits_of
from keras_vit.utils import checks
from keras_vit.utils.feeding import predict

RULES = "tokens"  # in the metadata of a published tower: the family of its tokenizer, "siglip" for both
WORDS = "words"  # the layer with the table of embeddings, and in its metadata the model's own table of words


class Towers(NamedTuple):
    """The parts of a model of images and texts."""

    image: keras.Model  # from pixels to embeddings
    text: keras.Model  # from ids, (batch, length), to embeddings
    scale: float  # by which cosines become logits
    bias: float | None  # added to logits of independent probabilities; `None` for those of a softmax


def towers_of(model):
    """Returns the `Towers` of a model.

    Raises:
        TypeError: For anything but a Keras model.
        ValueError: If it does not have two towers.
    """
    rule = "`model` must have an image tower and a text tower, as from keras_vit.two_towers or with part='both'."
    traits_of(model, rule, structure="towers")
    image, text, similarity = map(model.get_layer, TOWERS)
    scale, bias = (getattr(similarity, name, None) for name in ("logit_scale", "logit_bias"))
    scale, bias = (None if variable is None else _number(variable) for variable in (scale, bias))
    return Towers(image, text, float(np.exp(scale)), bias)


def _number(variable):
    return float(np.ravel(keras.ops.convert_to_numpy(variable))[0])


def tokens_for(towers, tokens=None):
    """Returns a function from texts to the ids that a text tower takes.

    Args:
        towers: `Towers`.
        tokens: Such a function, or a source of `keras_vit.tokenizer`. `None`, or the model itself, for its own table of
            words.

    Raises:
        ValueError: If there is no such table; or for a tokenizer of another tower: with ids that its table lacks, other
            rules, or another end of text.
    """
    length = towers.text.input_shape[1]
    if tokens is None or isinstance(tokens, keras.Model):
        tokens = own_words(towers.text)
        if tokens is None:
            raise ValueError("The model has no table of words: pass `tokens`, a tokenizer. Received: tokens=None")
    tokens = tokens if callable(tokens) else tokenizer(tokens, length)
    if isinstance(tokens, Tokenizer):
        _check_own(towers.text, tokens)
    return tokens


def _check_own(text, tokens):
    """Raises ValueError unless a `Tokenizer` may be that of a text tower."""
    rows, rules = table_of(text)[1], _stated(text, RULES)
    end = next((getattr(layer, "end", None) for layer in text.layers if layer.name == "pool"), None)
    for wrong, own, other in (
        (tokens.size > rows, f"whose table has {rows} rows", f"ids up to {tokens.size - 1}"),
        (rules and not tokens.family.startswith(rules), f"by the rules of {rules!r}", f"those of {tokens.family!r}"),
        (end is not None and tokens.end != end, f"whose texts end with the id {end}", f"the end {tokens.end}"),
    ):
        if wrong:
            raise ValueError(f"`tokens` must be the text tower's own, {own}. Received: {other}")


def own_words(text):
    """Returns the table of words in a text tower's metadata, or `None`."""
    table = _stated(text, WORDS)
    return list(table) if table else None


def _stated(text, name):
    """Returns what the metadata of a text tower say, or `None`."""
    return getattr(text.get_layer(WORDS), "metadata", {}).get(name)


def usual_tokens(model, name):
    """Returns what `tokens` is for a named model: the model itself if it has a table of words, else its name."""
    return model if own_words(towers_of(model).text) else name


def text_vectors(towers, tokens, texts, batch_size=64):
    """Returns the embeddings of texts, of length 1, `(texts, width)`; arguments and errors as of `text_embeddings`."""
    return unit(text_embeddings(towers, tokens, texts, batch_size))


def text_embeddings(towers, tokens, texts, batch_size=64):
    """Returns the embeddings of texts as the tower gives them, float32 `(texts, width)`.

    Args:
        towers: `Towers`.
        tokens: As in `tokens_for`.
        texts: A text or several.
        batch_size: Number of texts that are computed at once.

    Raises:
        TypeError, ValueError: As `tokens_for` and a `Tokenizer`; for an empty text, ids that do not fit the tower, or
            embeddings that are not finite.
    """
    tokens, texts = tokens_for(towers, tokens), listed(texts)
    if not texts or not all(map(str.strip, texts)):
        raise ValueError(f"Each text must have a word. Received: {checks.shown(texts):.100}")
    ids, rows = np.asarray(tokens(texts)), table_of(towers.text)[1]
    shape = (len(texts), towers.text.input_shape[1])
    if ids.shape != shape or ids.dtype.kind not in "iu":
        raise ValueError(f"`tokens` must return integers of shape {shape}. Received: {ids.shape}, {ids.dtype}")
    if ids.min() < 0 or ids.max() >= rows:
        raise ValueError(f"`tokens` must return ids from 0 to {rows - 1}. Received: {ids.min()} to {ids.max()}")
    vectors = np.asarray(predict(towers.text, ids.astype("int32"), batch_size), "float32")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{towers.text.name!r} must return finite embeddings. Received: NaN or infinity")
    return vectors


def projected(image, vectors, batch_size=1024):
    """Returns embeddings of images, of length 1, from the vectors that enter the head of an image tower."""
    return projection_of(image, batch_size)(vectors)


def projection_of(image, batch_size=1024):
    """Returns the function of `projected`, which is compiled once for several calls."""
    before, after = vectors_of(image), image.outputs[0]
    if before is after:
        return unit
    head = keras.Model(before, after)
    return lambda vectors: unit(np.asarray(predict(head, vectors, batch_size), "float32"))
