"""Makes rows of ids of texts, by the rules of a published tokenizer or by a table of words."""

import collections
import os
import re
from collections.abc import Sequence

import numpy as np

from keras_vit.text import engines, files, guard
from keras_vit.text.families import FAMILIES, OWN, UNKNOWN
from keras_vit.utils import checks

LONG = ("raise", "cut")


def tokenizer(
    source: str | os.PathLike | Sequence[str],
    length: int,
    *,
    family: str | None = None,
    long: str = "raise",
) -> "Tokenizer":
    """Reads a tokenizer: a function from texts to rows of ids, which a text tower takes.

    Files of published tokenizers need an extra: `pip install 'keras-vision-transformers[text]'`. A table of words does
    not.

    Args:
        source: Folder of a published model, one of the files `tokenizer.json`, `vocab.json` (with `merges.txt`),
            `vocab.txt`, `spiece.model` and `sentencepiece.bpe.model` in it, or its repository, `hf://owner/name`. Or a
            table of words: a list in the order of their ids, in lower case, with `"<pad>"`. A word is a run of
            letters and digits, or another single sign. A word that the table lacks is cut into the longest rows from
            the left, of which those after the first begin with `##`. If the table has `"<start>"` and `"<end>"`, they
            are put around each text; `"<unknown>"` is for words that cannot be cut. A table with a space, `" "`, is one
            of letters: each letter and each space of a text has an id, and upper case is kept.
        length: Ids in a row, that of the tower's table of positions: 77 for CLIP, 64 for SigLIP.
        family: Whose rules apply: `"clip"`, `"siglip"`, `"siglip2"`, `"bert"`, `"gpt2"`, `"roberta"` or `"xlmr"`;
            `"words"` or `"letters"` for a table. By default what `tokenizer_config.json`, `config.json` or
            `open_clip_config.json` next to the file says.
        long: What happens to a text of more ids: `"raise"`, or `"cut"`, which keeps the end's id.

    Returns:
        A `Tokenizer`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the files do not say which family, are damaged or of another one; for a table with a word twice,
            or that could not be found in a text.
        ImportError: If the package that reads the file is not installed.

    Example:

    >>> tokenizer(["<pad>", "a", "cat", "red"], 4)(["a red cat", "Cat"])
    array([[1, 3, 2, 0],
           [2, 0, 0, 0]], dtype=int32)
    """
    checks.positive(length=length)
    checks.one_of("long", long, LONG)
    if family is not None:
        checks.one_of("family", family, tuple(FAMILIES))
    if isinstance(source, (list, tuple)):
        own = "letters" if any(isinstance(word, str) and word == " " for word in source) else "words"
        if family not in (None, own):
            raise ValueError(
                f"family={own!r} is that of this table: one of letters has the space, ' '. Received: family={family!r}"
            )
        return _of(_checked(source, own), own, {}, length, long, "the table")
    checks.path("source", source)
    if family in OWN:
        raise ValueError(f"family={family!r} must have a list of {family}. Received: source={str(source)!r}")
    location = files.find(source, family)
    name = repr(str(location.path))
    with guard.said(f"{name} is damaged or no tokenizer"):
        guard.check(location.path)
        engine = FAMILIES[location.family].read[location.path.name](location.path, location.settings)
    return _of(guard.guarded(engine, name), location.family, location.changes, length, long, name)


class Tokenizer:
    """A function from texts to ids, int32, `(texts, length)`; `tokenizer` makes it.

    Attributes:
        length: Ids in a row.
        family: Name of its rules.
        size: Rows that a table of embeddings must have at least.
        pad: Id that fills a row.
        start: Id before each text, or `None`.
        end: Id after each text, or `None`.
    """

    def __init__(self, engine, clean, marks, length, long, family):
        self.length = length
        self.family = family
        self.size = max(engine.size, *(1 + id for id in marks.values() if id is not None))
        self.pad = marks["pad"]
        self.start = marks["start"]
        self.end = marks["end"]
        self._pieces = engine.pieces
        self._text_of = engine.text_of
        self._clean = clean
        self._long = long

    def __call__(self, texts: str | Sequence[str]) -> np.ndarray:
        """Returns the ids of texts, or of one: int32, `(texts, length)`.

        Raises:
            TypeError: If a text is no string.
            ValueError: For a text that is too long, is no valid Unicode, or has a word that the table lacks.
        """
        texts = listed(texts)
        rows = np.full((len(texts), self.length), self.pad, "int32")
        for row, text, ids in zip(rows, texts, self.ids(texts)):
            if len(ids) > self.length and self._long == "raise":
                raise ValueError(
                    f"A text must have at most {self.length} tokens: shorten it, or pass long='cut'. "
                    f"Received: {len(ids)} in {checks.shown(text):.200}"
                )
            if len(ids) > self.length:
                ids = ids[: self.length] if self.end is None else [*ids[: self.length - 1], self.end]
            row[: len(ids)] = ids
        return rows

    def parts(self, text: str) -> list[str]:
        """Returns the words and signs of a text, cleaned as for a table of words; of one of letters, the letters."""
        clean = self._clean(text)
        return [*clean] if self.family == "letters" else engines.PIECE.findall(clean)

    def begun(self, texts: str | Sequence[str]) -> list[list[int]]:
        """Returns the ids of the beginning of each text, with start and without end; errors as in a call."""
        before = [] if self.start is None else [self.start]
        return [before + ids for ids in self._pieces([self._clean(text) for text in listed(texts)])]

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Returns the texts of rows of ids: what comes before the end, without start and other special pieces.

        Raises:
            ValueError: If `rows` is no sequence of rows of integers, 0 or more.
        """
        rows = [np.asarray(row) for row in rows] if isinstance(rows, (list, tuple, np.ndarray)) else [np.zeros(())]
        if any(row.ndim != 1 or (row.dtype.kind not in "iu" and row.size) or (row < 0).any() for row in rows):
            raise ValueError(f"`rows` must be rows of ids, integers of at least 0. Received: {checks.shown(rows):.100}")
        texts = [self._text_of(self._inside([int(id) for id in row])) for row in rows]
        return [text.replace("</w>", " ") for text in texts] if self.family == "clip" else texts

    def _inside(self, ids):
        ids = ids[1:] if ids and ids[0] == self.start else ids
        ids = ids[: ids.index(self.end)] if self.end in ids else ids
        return [id for id in ids if id != self.pad and id < self.size]

    def ids(self, texts: str | Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text, with start and end, of any length; errors as in a call."""
        before = [] if self.start is None else [self.start]
        after = [] if self.end is None else [self.end]
        return [before + ids + after for ids in self._pieces([self._clean(text) for text in listed(texts)])]


def listed(texts):
    """Returns texts as a list, also a single one; raises for what is no text."""
    if isinstance(texts, str):
        texts = [texts]
    elif isinstance(texts, np.ndarray):
        texts = texts.tolist()
    if not isinstance(texts, (list, tuple)):
        raise TypeError(f"`texts` must be a string or a list of them. Received: {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"Each text must be a string. Received: {checks.shown(text):.200}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"Each text must be valid Unicode. Received: {checks.shown(text):.200}") from None
    return list(texts)


def _of(engine, family, changes, length, long, source):
    """Returns a `Tokenizer` by the row of a family, in which some fields are replaced."""
    row = FAMILIES[family]._replace(**changes)
    marks = {}
    for name in ("pad", "start", "end"):
        value = getattr(row, name)
        marks[name] = engine.id_of(value) if isinstance(value, str) else value
        optional = value is None or (family in OWN and name != "pad")
        if marks[name] is None and not optional:
            raise ValueError(f"{source} must have the piece {value!r}, as all of {family!r}. Received: none")
    least = 1 + sum(marks[name] is not None for name in ("start", "end"))
    if length < least:
        raise ValueError(f"`length` must be at least {least} for {family!r}. Received: length={length}")
    return Tokenizer(engine, _around(engine.kept, row.clean), marks, length, long, family)


def _around(words, clean):
    """Returns a function that cleans what is around some words, which stay as they are."""
    if not words or all(word == clean(word) for word in words):
        return clean
    pattern = re.compile(f"({'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})")
    return lambda text: "".join(part if i % 2 else clean(part) for i, part in enumerate(pattern.split(text)))


def _checked(words, own):
    """Returns the engine of a table of words or letters, each of which a text can have."""
    row = FAMILIES[own]
    marks = {row.pad, row.start, row.end, UNKNOWN}
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"Each word of a table must be a string. Received: {checks.shown(word):.100}")
        if own == "letters" and word not in marks and len(word) != 1:
            raise ValueError(
                f"A row of a table with a space must be one letter or sign. Received: {checks.shown(word):.100}"
            )
        if own == "words" and word not in marks and (not engines.is_piece(word) or word != row.clean(word)):
            raise ValueError(
                "A word must be one run of lower-case letters and digits, which may begin with ##, or one sign. "
                f"Received: {checks.shown(word):.100}"
            )
    twice = next((word for word, count in collections.Counter(words).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"Each word of a table must be there once. Received: {twice!r:.100} twice")
    return (engines.letters if own == "letters" else engines.table)(words, UNKNOWN)
