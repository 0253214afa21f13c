"""Searches over a table of probabilities, beside a plain search over lists."""

import numpy as np
import pytest
from keras import ops

from keras_vit.generation.search import Rules, beam_search, drawn, one_by_one
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
    ids, scores = map(numbers, one_by_one(stepper(1), logits, cache, begun, rules))
    for row in range(COUNT):
        text, total = numbers(begun)[row].tolist(), 0.0
        while len(text) < 9 and (len(text) == first or text[-1] != 2):
            found = logs(text, row)
            text.append(int(found.argmax()))
            total += found.max()
        assert ids[row].tolist() == text + [0] * (9 - len(text))
        assert scores[row] == pytest.approx(total / (len(text) - first), abs=1e-4)


@pytest.mark.parametrize(
    "temperature, top_k, top_p", [(1.0, None, 1.0), (0.5, 3, 1.0), (2.0, None, 0.7), (1.0, 5, 0.6)]
)
def test_words_are_drawn_as_often_as_their_probabilities_say(temperature, top_k, top_p):
    logits = TABLE[0, 0, 0]
    draws = (np.arange(10_000, dtype="float32")[:, None] + 0.5) / 10_000  # evenly, so that nothing is by chance
    rules = Rules(9, end=2, pad=0, temperature=temperature, top_k=top_k, top_p=top_p)
    words = numbers(drawn(ops.convert_to_tensor(np.tile(logits, (10_000, 1))), rules, ops.convert_to_tensor(draws)))
    order = np.argsort(-logits)
    kept = order[:top_k]
    shares = np.exp(logits[kept] / temperature)
    shares /= shares.sum()
    count = 1 + int((np.cumsum(shares) < top_p - 1e-6).sum())  # the fewest that reach it together
    wanted = np.zeros(WORDS)
    wanted[kept[:count]] = shares[:count] / shares[:count].sum()
    np.testing.assert_allclose(np.bincount(words, minlength=WORDS) / 10_000, wanted, atol=2e-4)


def test_texts_that_are_drawn():
    rules, (begun, logits, cache) = Rules(9, end=2, pad=0, temperature=1.0), begun_with(1)
    draws = np.random.default_rng(0).random((COUNT, 9), "float32")
    ids, scores = map(numbers, one_by_one(stepper(1), logits, cache, begun, rules, ops.convert_to_tensor(draws)))
    for row in range(COUNT):
        text, total = [int(numbers(begun)[row, 0])], 0.0
        while (len(text) < 9 and text[-1] != 2) or len(text) == 1:
            log = logs(text, row)
            order = np.argsort(-log)
            place = (np.cumsum(np.exp(log[order])) <= draws[row, len(text)]).sum()
            text.append(int(order[place]))
            total += log[text[-1]]
        assert ids[row].tolist() == text + [0] * (9 - len(text))
        assert scores[row] == pytest.approx(total / (len(text) - 1), abs=1e-4)
    likeliest, _ = one_by_one(stepper(1), logits, cache, begun, Rules(9, end=2, pad=0))
    for least in (dict(temperature=1e-3), dict(temperature=1e-40), dict(temperature=1.0, top_p=1e-50)):
        cold, _ = one_by_one(
            stepper(1), logits, cache, begun, Rules(9, end=2, pad=0, **least), ops.convert_to_tensor(draws)
        )
        np.testing.assert_array_equal(numbers(cold), numbers(likeliest))
