"""What a model is asked for: labels or texts to draw, texts to translate."""

import keras
import numpy as np

from keras_vit.models.dit import classes_of, none_of, reads_texts, words_of
from keras_vit.models.inputs import metadata_of
from keras_vit.models.outputs import distinct
from keras_vit.text import tokenizer
from keras_vit.text.unknown import unknown_in
from keras_vit.utils import checks
from keras_vit.utils.warned import quoted, warn


def asked_of(model, given):
    """Returns labels, int32 `(images,)`, or ids of texts, int32 `(images, length)`.

    Args:
        model: A model from `dit`.
        given: As `labels` in `sample`.

    Raises:
        TypeError, ValueError: For what the model does not take.
    """
    return texts_of(model, given) if reads_texts(model) else labels_of(model, given)


def labels_of(model, labels):
    """Returns the labels of images, int32 `(images,)`; raises ValueError for one that the model lacks.

    Args:
        model: A model from `dit`.
        labels: As in `sample`.
    """
    count, names = classes_of(model), distinct(tuple(metadata_of(model).get("labels") or ()))
    classes = _listed(labels)
    label_of = {None: count, **{name: i for i, name in enumerate(names)}, **{i: i for i in range(count + 1)}}
    if not classes:
        raise ValueError("`labels` must have a class for each image. Received: none")
    wrong = [each for each in classes if not isinstance(each, (str, int, type(None))) or type(each) is bool]
    wrong += [each for each in classes if each not in wrong and each not in label_of]
    if wrong:
        listed = f", {', '.join(map(repr, names[:10]))}{', ...' * (len(names) > 10)}" if names else ""
        raise ValueError(
            f"`labels` must be classes, 0 to {count - 1}{listed}; {count} or None for none. "
            f"Received: {checks.shown(wrong[0])}"
        )
    return np.array([label_of[each] for each in classes], "int32")


def _listed(labels):
    """Returns labels as a list of Python's values; raises ValueError for an array of more than one axis."""
    if hasattr(labels, "shape"):  # an array, or a tensor
        labels = keras.ops.convert_to_numpy(labels)
        if labels.ndim > 1:
            raise ValueError(f"`labels` must be one for each image. Received: shape={labels.shape}")
        return labels.reshape(-1).tolist()
    if labels is None or isinstance(labels, (str, int, float)) or not hasattr(labels, "__iter__"):
        return [labels]
    return [each.item() if isinstance(each, np.generic) else each for each in labels]


def texts_of(model, texts):
    """Returns the ids of texts, int32 `(images, length)`.

    Args:
        model: A model from `dit` with a text tower.
        texts: A text for each image, or one alone; `None` for no text. Or ids, integers `(images, length)`.

    Raises:
        ValueError: For a text without a word, one that is too long, ids that the model lacks, and for texts where its
            file names no tokenizer.

    Warns:
        UserWarning: For words that the model does not know.
    """
    words = words_of(model)
    if hasattr(texts, "shape"):  # an array, or a tensor
        texts = texts if isinstance(texts, np.ndarray) else keras.ops.convert_to_numpy(texts)
        if texts.dtype.kind not in "UO":
            return checked_ids(texts, words)
        texts = texts.reshape(-1).tolist()
    texts = [texts] if isinstance(texts, (str, type(None))) else checks.sequence("texts", texts)
    if not texts:
        raise ValueError("`texts` must have a text for each image. Received: none")
    wrong = [each for each in texts if each is not None and not (isinstance(each, str) and each.strip())]
    if wrong:
        raise ValueError(
            "Each text must be a string with a word, or None for no text; this model draws texts, not classes. "
            f"Received: {checks.shown(wrong[0])}"
        )
    said = [each for each in texts if each is not None]
    rows = iter(ids_by(words, said) if said else ())
    return np.stack([none_of(model) if each is None else next(rows) for each in texts])


def source_ids(tower, texts):
    """Returns the ids of texts to translate, int32 `(texts, length)`.

    Args:
        tower: A `text_tower` that returns all tokens.
        texts: A text or several; or ids, integers `(texts, length)`.

    Raises:
        ValueError: For a text without a word, or one that is too long; for texts where the tower names no tokenizer;
            for ids that it lacks.
    """
    words = tower.get_layer("words")
    if getattr(texts, "dtype", None) is not None and np.asarray(texts).dtype.kind not in "UO":
        return checked_ids(np.asarray(texts), words)
    texts = [texts] if isinstance(texts, str) else checks.sequence("images", texts)
    wrong = [each for each in texts if not (isinstance(each, str) and each.strip())]
    if wrong or not texts:
        raise ValueError(
            "`images` must be texts with a word each, for a model that translates. "
            f"Received: {checks.shown(wrong[0]) if wrong else 'none'}"
        )
    return ids_by(words, texts)


def ids_by(words, texts):
    """Returns the ids of texts, int32 `(texts, length)`, by what a layer of words says of its tokenizer."""
    table, source = (words.metadata.get(name) for name in ("words", "tokens"))
    if not (table or source):
        raise ValueError(
            "The model must have a table of words, or name its tokenizer: pass ids, (texts, "
            f"{words.length}). Received: texts for a model without"
        )
    table = list(table or ())
    tokens = tokenizer(table or source, words.length)
    ids = tokens(texts)
    if lacking := dict.fromkeys(word for text in dict.fromkeys(texts) for word in unknown_in(tokens, table, text)):
        warn(f"The model does not know these words or signs: {quoted([*lacking])}.")
    return ids


def checked_ids(ids, words):
    """Returns ids as int32; raises ValueError unless they are rows of a layer's words."""
    fits = ids.dtype.kind in "iu" and ids.ndim == 2 and ids.shape[1] == words.length and len(ids)
    if not fits or ids.min() < 0 or ids.max() >= words.vocabulary:
        raise ValueError(
            f"Ids must be integers (texts, {words.length}), from 0 to below {words.vocabulary}. "
            f"Received: shape={ids.shape}, dtype={ids.dtype}"
        )
    return ids.astype("int32")
