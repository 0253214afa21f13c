"""Writes texts word by word: the likeliest next word each time, a drawn one, or the likeliest text by beam search."""

from typing import NamedTuple

import keras
from keras import ops

NEVER = -1e9  # a logarithm of a probability
COLDEST = 1e-6  # a temperature at which the likeliest word is always drawn; float32 divides by no smaller one


class Rules(NamedTuple):
    """How texts are written."""

    length: int  # ids of a text, with those that it begins with
    end: int  # id after which a text is not continued
    pad: int  # id that fills the rest
    length_penalty: float = 1.0  # a text's score is its log-probability, divided by its length to this power
    temperature: float = 0.0  # by which logits are divided before words are drawn; with 0, none is drawn
    top_k: int | None = None  # words among which one is drawn, the likeliest
    top_p: float = 1.0  # and as few of them as have this probability together


def room(first, rules, fillers):
    """Returns the length of the longest text that is written, with the padding before shorter prompts."""
    return rules.length if fillers is None else rules.length + first - 1


def one_by_one(step, logits, cache, begun, rules, draws=None, fillers=None):
    """Writes the likeliest next word each time, or with a temperature one that is drawn.

    Args:
        step: Function from words `(sequences, 1)`, their place and a cache to logits `(sequences, vocabulary)` and the
            cache with these words.
        logits: Logits after what the texts begin with, `(sequences, vocabulary)`.
        cache: The cache with what they begin with: a nest of tensors, sequences first.
        begun: The ids that they begin with, `(sequences, words)`, int32.
        rules: `Rules`.
        draws: Uniform numbers, from 0 to below 1, `(sequences, length)`, which decide what is drawn.
        fillers: Number of padding tokens at the beginning of each row, `(sequences,)`, or `None`; they do not count as
            its length.

    Returns:
        Ids, int32, `(sequences, length)`, with fillers `(sequences, length + words - 1)`, and the score of each text:
        that of its words' own probabilities.
    """
    count, first = begun.shape
    most = room(first, rules, fillers)
    ids = ops.pad(begun, ((0, 0), (0, most - first)), constant_values=rules.pad)

    def written(place, logits, cache, ids, done, score, words):
        logs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        if rules.temperature:
            word = drawn(logs, rules, ops.slice(draws, (0, place), (count, 1)))
        else:
            word = ops.cast(ops.argmax(logs, axis=-1), "int32")
        score = score + ops.where(done, 0.0, ops.take_along_axis(logs, word[:, None], axis=-1)[:, 0])
        word = ops.where(done, rules.pad, word)
        ids = ops.slice_update(ids, (0, place), word[:, None])
        words = words + ops.cast(ops.logical_not(done), "float32")
        over = word == rules.end
        if fillers is not None:
            over = ops.logical_or(over, place + 1 - fillers >= rules.length)
        return place + 1, cache, ids, ops.logical_or(done, over), score, words

    def go_on(place, cache, ids, done, score, words):
        return ops.logical_and(place < most, ops.logical_not(ops.all(done)))

    def body(place, cache, ids, *rest):
        last = ops.slice(ids, (0, place - 1), (count, 1))
        logits, cache = step(last, place - 1, cache)
        return written(place, logits, cache, ids, *rest)

    state = (ops.zeros((count,), "bool"), ops.zeros((count,)), ops.zeros((count,)))
    state = written(ops.convert_to_tensor(first, "int32"), logits, cache, ids, *state)
    _, _, ids, _, score, words = ops.while_loop(go_on, body, state)
    return ids, score / words**rules.length_penalty


def drawn(logits, rules, draws):
    """Returns a word for each sequence, drawn by its probability.

    Of the `top_k` likeliest words (Fan et al. 2018, arXiv:1805.04833), the nucleus of `top_p` (Holtzman et al. 2019,
    arXiv:1904.09751), in transformers' order: temperature, `top_k`, `top_p`.

    Args:
        logits: `(sequences, vocabulary)`, float32.
        rules: `Rules`.
        draws: Uniform numbers, `(sequences, 1)`.

    Returns:
        Ids, int32, `(sequences,)`.
    """
    most = min(rules.top_k or logits.shape[-1], logits.shape[-1])
    top, words = ops.top_k(logits, most)
    below = (top - top[:, :1]) / max(rules.temperature, COLDEST)
    shares = ops.exp(ops.log_softmax(below, axis=-1))  # the largest first
    inside = ops.cumsum(shares, axis=-1) - shares < rules.top_p
    sums = ops.cumsum(ops.where(inside, shares, 0.0), axis=-1)
    place = ops.sum(ops.cast(sums <= draws * sums[:, -1:], "int32"), axis=-1, keepdims=True)
    last = ops.sum(ops.cast(inside, "int32"), axis=-1, keepdims=True) - 1
    place = ops.maximum(ops.minimum(place, last), 0)  # sums are rounded, and so is a tiny `top_p`
    return ops.cast(ops.take_along_axis(words, place, axis=-1)[:, 0], "int32")


def beam_search(step, logits, cache, begun, rules, beams, fillers=None):
    """Writes the likeliest texts that a search with several beams finds, as transformers 5 searches.

    Of each text, the `beams` likeliest beginnings are continued. Of the `2 * beams` likeliest continuations, those that
    end join the finished texts if they are among the first `beams`; the others are continued. The search ends when the
    best beginning, by its score so far, is not better than the worst of `beams` finished texts.

    Arguments and results as of `one_by_one`; `step` is called with all beams of a text in a row.
    """
    count, first = begun.shape
    vocabulary = logits.shape[-1]
    most = room(first, rules, fillers)
    ids = ops.pad(begun, ((0, 0), (0, most - first)), constant_values=rules.pad)
    ids = ops.tile(ids[:, None], (1, beams, 1))  # (texts, beams, length)
    row = ops.arange(count, dtype="int32")[:, None]
    in_top = ops.arange(2 * beams) < beams

    def pick(array, chosen):  # (texts, any, ...), (texts, some)
        flat = ops.reshape(array, (count * array.shape[1], *array.shape[2:]))
        return ops.take(flat, row * array.shape[1] + chosen, axis=0)

    def continued(place, logits, cache, ids, live, texts, scores, ended, improves, _):
        logs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        logs = ops.reshape(logs, (count, beams, vocabulary)) + live[..., None]
        top, at = ops.top_k(ops.reshape(logs, (count, -1)), 2 * beams)  # (texts, 2 * beams)
        at = ops.cast(at, "int32")
        word, beam = at % vocabulary, at // vocabulary
        ids = ops.slice_update(pick(ids, beam), (0, 0, place), word[..., None])
        over = place + 1 - (0 if fillers is None else fillers[:, None]) >= rules.length
        ends = ops.logical_or(word == rules.end, over)

        live, chosen = ops.top_k(ops.where(ends, top + NEVER, top), beams)
        chosen = ops.cast(chosen, "int32")
        source = ops.reshape(row * beams + ops.take_along_axis(beam, chosen, axis=1), (-1,))
        cache = keras.tree.map_structure(lambda array: ops.take(array, source, axis=0), cache)

        power = ops.cast(place + 1 - first, "float32") ** rules.length_penalty
        now = ops.logical_and(ends, in_top)
        finished = ops.where(ops.logical_and(now, improves), top / power, NEVER)
        scores, best = ops.top_k(ops.concatenate([scores, finished], axis=1), beams)
        best = ops.cast(best, "int32")
        texts = pick(ops.concatenate([texts, ids], axis=1), best)
        ended = pick(ops.concatenate([ended, now], axis=1), best)
        worst = ops.where(ended, ops.min(scores, axis=1, keepdims=True), NEVER)
        better = ops.any(live[:, :1] / power > worst, axis=1, keepdims=True)
        improves = ops.logical_and(ops.logical_and(improves, better), ops.logical_not(over))
        goes = ops.logical_and(ops.any(improves), ops.logical_not(ops.all(ends)))
        return place + 1, cache, pick(ids, chosen), live, texts, scores, ended, improves, goes

    def go_on(place, *state):
        return ops.logical_and(state[-1], place < most)

    def body(place, cache, ids, *rest):
        last = ops.reshape(ops.slice(ids, (0, 0, place - 1), (count, beams, 1)), (count * beams, 1))
        logits, cache = step(last, place - 1, cache)
        return continued(place, logits, cache, ids, *rest)

    first_beam = ops.tile(ops.convert_to_tensor([[0.0] + [NEVER] * (beams - 1)]), (count, 1))
    state = (first_beam, ids, ops.full((count, beams), NEVER), ops.zeros((count, beams), "bool"))
    state = (*state, ops.ones((count, 1), "bool"), ops.convert_to_tensor(True))
    logits = ops.repeat(logits, beams, axis=0)
    cache = keras.tree.map_structure(lambda array: ops.repeat(array, beams, axis=0), cache)
    state = continued(ops.convert_to_tensor(first, "int32"), logits, cache, ids, *state)
    _, _, _, _, texts, scores, *_ = ops.while_loop(go_on, body, state)
    return texts[:, 0], scores[:, 0]
