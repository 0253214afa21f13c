"""Tables of words of one's own: learned from texts, with pieces of words for words that no text had."""

import collections

from keras_vit.text.engines import PIECE
from keras_vit.text.families import FAMILIES, UNKNOWN
from keras_vit.text.pairs import Pairs
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
        letters: Whether the table is one of letters, the most frequent ones, with the space: as to read lines of text,
            where upper case and spaces count.

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
    pairs = Pairs(counts)
    table = [row.pad, row.end, UNKNOWN, *sorted(set(pairs.pieces))]
    while len(table) < size and (most := pairs.most()) and pairs.times[most] >= least:
        table.append(pairs.join(most))
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
