"""Learning a table by pairs, beside a plain search that counts all pairs anew for each row."""

import collections
import itertools
import random
import time

import pytest

from keras_vit.text.own import learn_words
from keras_vit.text.pairs import Pairs

RNG = random.Random(0)


def counted_anew(texts, size, least):
    counts = collections.Counter(word for text in texts for word in text.split())
    words = {word: [word[0], *("##" + letter for letter in word[1:])] for word in counts}
    table = ["<pad>", "<end>", "<unknown>", *sorted({piece for pieces in words.values() for piece in pieces})]
    while len(table) < size:
        pairs = collections.Counter()
        for word, pieces in words.items():
            for pair in itertools.pairwise(pieces):
                pairs[pair] += counts[word]
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if pair is None or pairs[pair] < least:
            break
        table.append(pair[0] + pair[1][2:])
        for word, pieces in words.items():
            found = []
            for piece in pieces:
                together = found and (found[-1], piece) == pair
                found[-1:] = [table[-1]] if together else [*found[-1:], piece]
            words[word] = found
    return list(dict.fromkeys(table))


@pytest.mark.parametrize("letters", ["a", "ab", "abc", "abcdefg"])
def test_the_table_of_a_plain_search(letters):
    for _ in range(20):
        words = ["".join(RNG.choices(letters, k=RNG.randint(1, 14))) for _ in range(RNG.randint(1, 60))]
        texts = [" ".join(words[i::3]) for i in range(3)]
        size, least = RNG.randint(1, 90), RNG.randint(1, 4)
        assert learn_words(texts, size, least) == counted_anew(texts, size, least)


def test_a_pair_is_joined_from_the_left_wherever_it_stands():
    pairs = Pairs({"aaaaa": 2, "ba": 1})
    assert pairs.times == {("a", "##a"): 2, ("##a", "##a"): 6, ("b", "##a"): 1}
    assert pairs.most() == ("##a", "##a") and pairs.join(("##a", "##a")) == "##aa"
    assert [piece for piece in pairs.pieces if piece] == ["a", "##aa", "##aa", "b", "##a"]
    assert pairs.times == {("a", "##aa"): 2, ("##aa", "##aa"): 2, ("b", "##a"): 1}
    assert Pairs({"a": 3}).most() is None and Pairs({}).most() is None


def test_time_grows_with_the_letters():
    def seconds(count):
        word = "".join(RNG.choices("abcdefgh", k=count))
        start = time.process_time()
        learn_words([word], 3000)
        return time.process_time() - start

    assert seconds(40_000) < 20 * max(seconds(10_000), 0.02)  # by counting all pairs anew, minutes
