"""Searches over a table of probabilities, beside a plain search over lists."""

import numpy as np
import pytest
from keras import ops

from keras_vit.models.search import Rules, beam_search, greedy
from tests.captions import numbers

pytestmark = pytest.mark.backend

WORDS, COUNT = 7, 4
TABLE = np.random.default_rng(0).normal(0, 1.5, (COUNT, WORDS, WORDS, WORDS)).astype("float32")  # by the last two words


def logs(sequence, row):
    logits = TABLE[row, sequence[-2] if len(sequence) > 1 else 0, sequence[-1]]
    return logits - np.log(np.exp(logits).sum())


def over_lists(row, begun, rules, beams):
    """Returns the best text and its score by beam search, as transformers searches."""
    live, done = [(0.0, list(begun))], []
    score = lambda total, text: total / (len(text) - len(begun)) ** rules.length_penalty  # noqa: E731
    while True:
        more = [(total + log, [*text, word]) for total, text in live for word, log in enumerate(logs(text, row))]
        more = sorted(more, key=lambda each: -each[0])[: 2 * beams]
        over = [text[-1] == rules.end or len(text) == rules.length for _, text in more]
        done += [(score(*each), each[1]) for each, ends in list(zip(more, over))[:beams] if ends]
        done = sorted(done, key=lambda each: -each[0])[:beams]
        live = [each for each, ends in zip(more, over) if not ends][:beams]
        if not live or (len(done) == beams and score(*live[0]) <= done[-1][0]):
            return done[0]


def stepper(beams):
    """Returns a step whose cache has the word before the last; it is wrong unless beams keep their own cache."""

    def step(ids, place, cache):
        row = ops.repeat(ops.arange(COUNT), beams)
        before, last = cache[0][:, 0], ids[:, 0]
        logits = ops.take(ops.reshape(TABLE, (-1, WORDS)), (row * WORDS + before) * WORDS + last, axis=0)
        return logits, (ids,)

    return step


def begun_with(first):
    begun = np.random.default_rng(1).integers(0, WORDS, (COUNT, first)).astype("int32")
    before = begun[:, -2] if first > 1 else np.zeros(COUNT, int)
    logits = TABLE[np.arange(COUNT), before, begun[:, -1]]
    return ops.convert_to_tensor(begun), ops.convert_to_tensor(logits), (ops.convert_to_tensor(begun[:, -1:]),)


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("beams, penalty", [(2, 1.0), (3, 1.0), (3, 0.0), (3, 2.0), (2, -1.0)])
def test_beams_find_what_a_search_over_lists_finds(first, beams, penalty):
    rules, (begun, logits, cache) = Rules(9, end=2, pad=0, length_penalty=penalty), begun_with(first)
    ids, scores = map(numbers, beam_search(stepper(beams), logits, cache, begun, rules, beams))
    for row in range(COUNT):
        score, text = over_lists(row, numbers(begun)[row].tolist(), rules, beams)
        assert ids[row].tolist() == text + [0] * (9 - len(text))
        assert scores[row] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("first", [1, 3])
def test_greedy_takes_the_likeliest_word(first):
    rules, (begun, logits, cache) = Rules(9, end=2, pad=0), begun_with(first)
    ids, scores = map(numbers, greedy(stepper(1), logits, cache, begun, rules))
    for row in range(COUNT):
        text, total = numbers(begun)[row].tolist(), 0.0
        while len(text) < 9 and (len(text) == first or text[-1] != 2):
            found = logs(text, row)
            text.append(int(found.argmax()))
            total += found.max()
        assert ids[row].tolist() == text + [0] * (9 - len(text))
        assert scores[row] == pytest.approx(total / (len(text) - first), abs=1e-4)
