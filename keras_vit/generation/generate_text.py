"""Writes texts about images, translates or continues texts, by a decoder that writes word by word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.generation.asked import source_ids
from keras_vit.generation.search import Rules
from keras_vit.generation.writer import Plan, batches
from keras_vit.models.captioner import MARKS, is_translator, parts_of, words_of
from keras_vit.preparing.preprocessing import Preparation, listed
from keras_vit.text import Tokenizer, tokenizer
from keras_vit.text.families import FAMILIES
from keras_vit.utils import checks, progress
from keras_vit.utils.folders import shown
from keras_vit.utils.warned import left_out, warn

LENGTH = 64  # of a text, where neither the caller nor a shorter table of positions says another


class Texts(NamedTuple):
    """The result of `generate_text`."""

    ids: np.ndarray  # int32, (texts, length): from the start to the end, then padding
    scores: np.ndarray  # float32, (texts,): mean log-probability of a word, by `length_penalty`
    texts: list[str] | None  # what the ids mean; `None` without a tokenizer


def generate_text(
    model: keras.Model,
    images: Any = None,
    tokens: Any = None,
    *,
    beams: int = 1,
    length: int | None = None,
    length_penalty: float = 1.0,
    prompt: str | Sequence | np.ndarray | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    batch_size: int = 8,
    bad_images: str = "raise",
) -> Texts:
    """Writes texts word by word: captions of images, the words of a line, translations, or the rest of a text.

    Keys and values of the words before are kept, so a word costs one step of the decoder. With one beam, the likeliest
    word is taken each time. With several, the search is that of transformers 5: it ends when the best unfinished text
    is no better than the worst of the same number of finished ones. With a temperature, words are drawn.
    The first call for a batch size, a length of text and a way to choose words is compiled, and once more for prompts
    of twice as many words.

    Args:
        model: A model from `captioner`, or as `from_pretrained` reads one of TrOCR, BLIP or GPT-2; or a language model
            from `text_decoder`, whose metadata have the ids `start`, `end` and `pad`.
        images: Image files or other images that `preprocess` takes. Of a model that translates, the texts: one or
            several, or ids, integers `(texts, length)`. `None` for a language model.
        tokens: What turns ids into texts and prompts into ids: a `tokenizer`, or the folder or repository that it is
            read from. `None` for ids alone, or for a model whose file has a table of words or names its tokenizer.
        beams: Number of beams.
        length: Maximum number of ids of a text, with its start and its prompt. `None` for that of the model's published
            file, else 64, or fewer if the model has fewer positions. A warning counts the texts that are cut.
        length_penalty: A text's score is its log-probability divided by its length to this power: above 0, long texts
            are preferred. Only matters for several beams.
        prompt: What the texts begin with: one for all, or one for each. Texts, or ids as an array `(words,)` or
            `(texts, words)` with the start, or as lists of any lengths; `None` for the start alone.
        temperature: What logits are divided by before words are drawn by their probabilities: 1 for the model's own,
            less for likelier words. With 0, the likeliest is taken.
        top_k: Words among which one is drawn: the likeliest. `None` for all.
        top_p: Words are drawn from the smallest number of likeliest ones whose probabilities sum to `top_p`, above 0
            and at most 1.
        seed: Random seed of the drawn words.
        batch_size: Number of texts that are written at once.
        bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning; its ids are
            padding, its score is NaN and its text empty.

    Returns:
        `Texts`: `ids`, int32, `(texts, length)`; `scores`, float32, `(texts,)`; and `texts`.

    Raises:
        TypeError, ValueError: For another model, a tokenizer with more ids than the model, a prompt that leaves no
            room, an argument outside the above; and as `preprocess`.

    Example:

    >>> model = keras_vit.from_pretrained("hf://Salesforce/blip-image-captioning-base")
    >>> generate_text(model, ["cats.jpg"], "hf://Salesforce/blip-image-captioning-base").texts
    ['two cats sleeping on a couch']
    """
    options = {"beams": beams, "length": length, "length_penalty": length_penalty, "prompt": prompt, "top_p": top_p}
    options |= {"temperature": temperature, "top_k": top_k, "seed": seed, "batch_size": batch_size}
    checks.one_of("bad_images", bad_images, ("raise", "skip"))
    plan = planned(model, images, tokens, **options)
    count, rules = len(plan.begun), plan.rules
    ids, scores = np.full((count, rules.length), rules.pad, "int32"), np.full(count, np.nan, "float32")
    faults = []
    for batch in progress.counted(batches(plan), count, "texts"):
        if bad_images == "raise" and batch.errors:
            raise next(iter(batch.errors.values()))
        faults += map(str, batch.errors.values())
        ids[batch.places], scores[batch.places] = batch.ids, batch.scores
    if len(faults) == count:
        raise ValueError(f"No image could be read. The first of {count}: {faults[0]}")
    if faults:
        left_out(f"{len(faults)} of {count} images, which cannot be read", [shown(fault) for fault in faults])
    tell_cut(int((~_ends(ids, rules.end, plan.begun) & ~np.isnan(scores)).sum()), count, rules.length)
    if plan.tokens is None:
        return Texts(ids, scores, None)
    texts = texts_of(ids, rules.end, plan.tokens, plan.begun)
    return Texts(ids, scores, ["" if np.isnan(score) else text for text, score in zip(texts, scores)])


def planned(model, images=None, tokens=None, *, prompt=None, length=None, seed=0, batch_size=8, beams=1, **how):
    """Returns the `Plan` of a call of `generate_text`; its arguments and errors, but for images that cannot be read."""
    checks.model(model)
    checks.positive(beams=beams, batch_size=batch_size)
    how = {"length_penalty": 1.0, "temperature": 0.0, "top_k": None, "top_p": 1.0} | how
    checks.number(length_penalty=how["length_penalty"])
    _check_drawing(how["temperature"], how["top_k"], how["top_p"], seed, beams)
    image, decoder = parts_of(model)
    words = words_of(decoder)
    marks = _marks(words)
    if 2 * beams > words.vocabulary:  # the number of words that are compared
        raise ValueError(f"`beams` must be at most half of the vocabulary, {words.vocabulary}. Received: beams={beams}")
    length = _length(length, words)
    translates = is_translator(model)
    if (images is None) != (image is None):
        must = "texts, for a model that translates" if translates else "images, for a captioner"
        must = "None for a language model" if image is None else must
        raise ValueError(f"`images` must be {must}. Received: images={type(images).__name__}")
    if images is not None:
        images = [*source_ids(image, images)] if translates else listed(images, len(image.input_shape))
    if images is not None and not images:
        raise ValueError("`images` must contain an image. Received: an empty list")
    tokens = _tokens(tokens, words, length)
    begun = _begun(prompt, tokens, marks, None if images is None else len(images))
    _check_begun(begun, words.vocabulary, length)
    numbers = {name: float(how[name]) for name in ("length_penalty", "temperature", "top_p")}
    rules = Rules(length, marks["end"], marks["pad"], top_k=how["top_k"], **numbers)
    draws = np.random.default_rng(seed).random((len(begun), length), "float32") if rules.temperature else None
    prepare = None if images is None or translates else Preparation(image)
    reader = (lambda i: images and images[i][None]) if prepare is None else (lambda i: prepare(images[i]))
    return Plan(model, image, images, reader, begun, draws, rules, beams, batch_size, tokens)


def one_by_one(plan):
    """Yields the text of each image as soon as its batch is written; a warning at the end counts those that are cut.

    Yields:
        The image, its text and score, and `None`; or the image, `None` and why it cannot be read.
    """
    cut, rules = 0, plan.rules
    for batch in batches(plan):
        begun = [plan.begun[place] for place in batch.places]
        cut += int((~_ends(batch.ids, rules.end, begun)).sum())
        texts = texts_of(batch.ids, rules.end, plan.tokens, begun)
        texts = dict(zip(batch.places, zip(texts, batch.scores.tolist())))
        for place in sorted([*texts, *batch.errors]):
            yield plan.images[place], texts.get(place), batch.errors.get(place)
    tell_cut(cut, len(plan.begun), rules.length)


def tell_cut(count, of, length):
    """Warns of texts that end because of the length."""
    if count:
        warn(f"{count} of {of} texts were cut at length={length}: pass a larger one for whole texts.")


def _check_drawing(temperature, top_k, top_p, seed, beams):
    """Raises ValueError for numbers by which no word can be drawn, or that would not matter."""
    checks.number(temperature=temperature, top_p=top_p)
    checks.whole(seed=seed)
    if top_k is not None:
        checks.positive(top_k=top_k)
    if temperature < 0 or not 0 < top_p <= 1:
        raise ValueError(
            "`temperature` must be 0 or more, and `top_p` above 0 to 1. "
            f"Received: temperature={temperature}, top_p={top_p}"
        )
    if not temperature and (top_k is not None or top_p < 1):
        raise ValueError(
            f"`top_k` and `top_p` are for words that are drawn, with a temperature. Received: top_k={top_k}, "
            f"top_p={top_p}, temperature={temperature}"
        )
    if temperature and beams > 1:
        raise ValueError(f"Words are drawn with one beam. Received: temperature={temperature}, beams={beams}")


def _marks(words):
    """Returns the ids of start, end and padding in a decoder's metadata."""
    missing = [mark for mark in MARKS if type(words.metadata.get(mark)) is not int]
    if missing:
        raise ValueError(
            f"The model's metadata must have the ids {', '.join(MARKS)}: text_decoder(..., metadata={{'start': 0, "
            f"...}}), or captioner. Received: none as {', '.join(missing)}"
        )
    return {mark: words.metadata[mark] for mark in MARKS}


def _length(length, words):
    if length is None:
        published = words.metadata.get("length")
        return min(published if type(published) is int and published > 1 else LENGTH, words.length)
    checks.positive(length=length)
    if length > words.length:
        raise ValueError(f"`length` must be at most the model's, {words.length}. Received: length={length}")
    return int(length)


def stated_tokens(words):
    """Returns what a decoder's file says of its tokenizer, as `tokenizer` takes it, or `None`.

    It is a table of words, or a source. Of published files the metadata have the family alone.
    """
    table, source = (words.metadata.get(name) for name in ("words", "tokens"))
    if table:
        return list(table)
    return None if source in FAMILIES else source


def _tokens(tokens, words, length):
    """Returns a `Tokenizer` of the model, or `None`."""
    if tokens is None:
        source = stated_tokens(words)
        return tokenizer(source, max(length, 3)) if source else None
    tokens = tokens if isinstance(tokens, Tokenizer) else tokenizer(tokens, max(length, 3))
    if tokens.size > words.vocabulary:
        raise ValueError(
            f"`tokens` must be the model's own, whose table has {words.vocabulary} rows. "
            f"Received: ids up to {tokens.size - 1}"
        )
    return tokens


def _begun(prompt, tokens, marks, count):
    """Returns the ids that each text begins with, as lists; `count` is that of the images, if there are any."""
    start = marks["start"]
    if prompt is None:
        begun = [[start]]
    elif isinstance(prompt, str) or (isinstance(prompt, (list, tuple)) and all(isinstance(p, str) for p in prompt)):
        if tokens is None:
            raise ValueError(
                f"A prompt of words needs `tokens`, a tokenizer. Received: prompt={checks.shown(prompt):.100}"
            )
        begun = [ids if ids[:1] == [start] else [start, *ids] for ids in tokens.begun(prompt)]
    else:
        begun = _rows_of(prompt, marks)
    if len(begun) == 1 and count:
        begun = begun * count
    if count is not None and len(begun) != count:
        raise ValueError(f"`prompt` must be one, or one for each of {count} images. Received: {len(begun)}")
    return begun


def _rows_of(prompt, marks):
    """Returns the ids of a prompt as lists, without padding."""
    several = isinstance(prompt, (list, tuple)) and any(isinstance(each, (list, tuple, np.ndarray)) for each in prompt)
    rows = [np.asarray(each) for each in prompt] if several else [*np.atleast_2d(np.asarray(prompt))]
    if not rows or any(row.ndim != 1 or row.dtype.kind not in "iu" or not row.size for row in rows):
        raise ValueError(
            f"`prompt` must be texts, or ids of shape (words,) or (texts, words). "
            f"Received: prompt={checks.shown(prompt):.100}"
        )
    if marks["pad"] in (marks["start"], marks["end"]):
        return [row.tolist() for row in rows]
    real = [np.flatnonzero(row != marks["pad"]) for row in rows]
    return [row[places[0] : places[-1] + 1].tolist() if len(places) else [] for row, places in zip(rows, real)]


def _check_begun(begun, vocabulary, length):
    for ids in begun:
        if not 0 < len(ids) < length:
            raise ValueError(f"A prompt must leave room in length={length}. Received: {len(ids)} ids")
        if min(ids) < 0 or max(ids) >= vocabulary:
            raise ValueError(f"Ids of a prompt must be from 0 to {vocabulary - 1}. Received: {checks.shown(ids):.100}")


def _ends(ids, end, begun):
    """Returns whether each text has an end behind what it begins with."""
    return np.array([end in row[len(first) :] for row, first in zip(ids.tolist(), begun)], bool)


def texts_of(ids, end, tokens, begun):
    """Returns what ids mean, without the start, up to the end that was written, as a list of texts.

    Args:
        ids: Array `(texts, length)`.
        end: The id after a text. In what texts begin with, it is left out.
        tokens: A `Tokenizer`.
        begun: The ids that each begins with.
    """
    rows = []
    for row, first in zip(ids.tolist(), begun):
        written = row[len(first) :]
        written = written[: written.index(end)] if end in written else written
        rows.append([id for id in first[1:] if id != end] + written)
    return [text.strip() for text in tokens.texts(rows)]
