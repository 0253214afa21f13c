"""Tables of words of one's own: learned from texts, with pieces of words for words that no text had."""

import collections

from keras_vit.text.engines import INSIDE, PIECE
from keras_vit.text.families import FAMILIES, UNKNOWN
from keras_vit.text.tokenizer import listed
from keras_vit.utils import checks


def learn_words(texts, size: int = 1000, least: int = 2, letters: bool = False) -> list[str]:
    """Learns a table of words, and of pieces of rarer words, for `tokenizer`.

    Sennrich et al. 2016 (arXiv:1508.07909, "byte pair encoding"), section 3.2: every letter is a piece, and the most
    frequent pair of neighbors becomes a piece, again and again. A piece inside a word begins with `##`, as in BERT. The
    table is a list of strings, which the metadata of a model can keep.

    Args:
        texts: List of texts.
        size: Rows of the table, at most; one of pieces has all letters of the texts, however many.
        least: Times that a pair must occur to become a piece.
        letters: Whether the table is one of letters, the most frequent ones, with the blank: as to read lines of text,
            where capitals and blanks count.

    Returns:
        List of strings: `"<pad>"`, `"<end>"`, `"<unknown>"`, signs and letters by code, then pieces, the most frequent
        first.

    Raises:
        TypeError, ValueError: For what is no text, and for texts without a word.

    Example:

    >>> learn_words(["a cat", "two cats", "a bat"], 20)[3:]
    ['##a', '##o', '##s', '##t', '##w', 'a', 'b', 'c', 't', '##at', 'cat']
    """
    checks.positive(size=size, least=least)
    checks.switch(letters=letters)
    if letters:
        return _letters(listed(texts), size)
    row = FAMILIES["words"]
    counts = collections.Counter(word for text in listed(texts) for word in PIECE.findall(row.clean(text)))
    if not counts:
        raise ValueError(f"Texts must have words to learn from. Received: {checks.shown(texts):.100}")
    words = {word: [word[0], *(INSIDE + letter for letter in word[1:])] for word in counts}
    table = [row.pad, row.end, UNKNOWN, *sorted({piece for pieces in words.values() for piece in pieces})]
    pairs, places = collections.Counter(), collections.defaultdict(set)
    for word in words:
        _count(pairs, places, words, counts, word, 1)
    while len(table) < size and pairs:
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[pair] < least:
            break
        joined = pair[0] + pair[1].removeprefix(INSIDE)
        table.append(joined)
        for word in [*places[pair]]:
            _count(pairs, places, words, counts, word, -1)
            words[word] = _joined(words[word], pair, joined)
            _count(pairs, places, words, counts, word, 1)
    return list(dict.fromkeys(table))  # one piece may come from two pairs


def _letters(texts, size):
    """Returns a table of letters, those of one count by their code."""
    row = FAMILIES["letters"]
    counts = collections.Counter(letter for text in texts for letter in row.clean(text))
    if not counts:
        raise ValueError(f"Texts must have letters to learn from. Received: {checks.shown(texts):.100}")
    marks = [row.pad, row.end, UNKNOWN, " "]
    if size <= len(marks):
        raise ValueError(f"A table of letters must have more than {len(marks)} rows. Received: size={size}")
    rest = sorted(counts.keys() - {" "}, key=lambda letter: (-counts[letter], letter))
    return [*marks, *sorted(rest[: size - len(marks)])]


def _count(pairs, places, words, counts, word, sign):
    """Adds a word's pairs of neighbors to those of all words, or takes them away."""
    for pair in zip(words[word], words[word][1:]):
        pairs[pair] += sign * counts[word]
        if sign > 0:
            places[pair].add(word)
        elif pairs[pair] <= 0:
            del pairs[pair]


def _joined(pieces, pair, joined):
    """Returns the pieces of a word in which a pair of neighbors is one piece."""
    found, i = [], 0
    while i < len(pieces):
        together = tuple(pieces[i : i + 2]) == pair
        found.append(joined if together else pieces[i])
        i += 1 + together
    return found
