"""Cuts texts into pieces with ids: by the files of published tokenizers, or by a table of words."""

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

from keras_vit.utils import extras

EXTRA = "text"
# Of CLIP: contractions, letters, single digits, runs of anything else.
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTE_LEVEL = ("<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>")  # special tokens of GPT-2 and RoBERTa
BERT = ("[UNK]", "[SEP]", "[CLS]", "[PAD]", "[MASK]")
PIECE = re.compile(r"\w+|[^\w\s]")  # of a table of words: a run of letters and digits, or another sign
MOST_IDS = 2**24  # rows of the largest table of words that is meant to be real, times more than ten
ADDED = "added_tokens_decoder"  # in the settings: words that were added to a vocabulary, by id
HOW = ("single_word", "lstrip", "rstrip", "normalized", "special")
ROW = ""  # the key of a row in a tree of letters
UNREADABLE = "\N{REPLACEMENT CHARACTER}"  # what a letter that the table lacks is read as
INSIDE = "##"  # begins a piece that is not a word's first, in a table of words as in BERT's files


class Engine(NamedTuple):
    """What a file of a tokenizer computes."""

    pieces: Callable  # from a list of texts to a list of lists of ids, without start and end
    id_of: Callable  # from the name of a piece to its id, or `None`
    text_of: Callable  # from a list of ids to their text, without special pieces
    size: int  # rows that its ids need
    kept: tuple[str, ...] = ()  # names that are found in a text as it is, before it is cleaned


def whole(path, settings):
    """Reads `tokenizer.json`, which has all rules but those of start, end and length."""
    extras.need(repr(path.name), EXTRA, "tokenizers")
    from tokenizers import Tokenizer

    built = Tokenizer.from_file(str(path))
    built.no_truncation()
    built.no_padding()
    return _engine(built, settings)


def clip(path, settings):
    """Reads `vocab.json` and `merges.txt` as CLIP's: pairs of bytes, with `</w>` after a word's last one."""
    extras.need(repr(path.name), EXTRA, "tokenizers")
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    end = "<|endoftext|>"
    pairs = {"continuing_subword_prefix": "", "end_of_word_suffix": "</w>", "unk_token": end}
    built = Tokenizer(models.BPE.from_file(str(path), _merges(path), **pairs))
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    built.decoder = decoders.ByteLevel()
    built.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    words = pre_tokenizers.Split(Regex(CLIP), behavior="removed", invert=True)
    built.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return _engine(built, settings, ("<|startoftext|>", end))


def byte_level(path, settings):
    """Reads `vocab.json` and `merges.txt` as GPT-2's and RoBERTa's: pairs of bytes; a space begins a word."""
    extras.need(repr(path.name), EXTRA, "tokenizers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    built = Tokenizer(models.BPE.from_file(str(path), _merges(path)))
    built.decoder = decoders.ByteLevel()
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(settings.get("add_prefix_space", False)))
    return _engine(built, settings, BYTE_LEVEL)


def bert(path, settings):
    """Reads `vocab.txt` as BERT's: accents off and lower case unless the settings say otherwise, then WordPiece."""
    extras.need(repr(path.name), EXTRA, "tokenizers")
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    built = Tokenizer(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    built.decoder = decoders.WordPiece()
    built.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _engine(built, settings, BERT)


def sentences(path, settings):
    """Reads `spiece.model`, of the package sentencepiece."""
    extras.need(repr(path.name), EXTRA, "sentencepiece")
    from sentencepiece import SentencePieceProcessor

    built = SentencePieceProcessor(model_file=str(path))
    names = {built.id_to_piece(i): i for i in range(built.get_piece_size())}
    _check_known(settings.get(ADDED) or {}, names.get)
    return Engine(built.encode, names.get, built.decode, len(names))


def fairseq(path, settings):
    """Reads `sentencepiece.bpe.model` as XLM-R's: four names of its own come first, and one at the end."""
    inner = sentences(path, {})
    own = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": inner.size + 1}
    unknown = inner.id_of("<unk>")

    def pieces(texts):
        return [[own["<unk>"] if id == unknown else id + 1 for id in row] for row in inner.pieces(texts)]

    def id_of(name):
        id = inner.id_of(name)
        return own.get(name, None if id is None else id + 1)

    def text_of(ids):
        return inner.text_of([id - 1 for id in ids if 3 < id <= inner.size])

    _check_known(settings.get(ADDED) or {}, id_of)

    return Engine(pieces, id_of, text_of, inner.size + 2)


def table(words, unknown):
    """Returns the engine of a table of words, a list in the order of their ids.

    Args:
        words: List of different texts. A word is a run of letters and digits, or another single sign. A piece that
            begins with `##` continues a word.
        unknown: Name of the row of words that are not in the table, if it has one.
    """
    ids = {word: i for i, word in enumerate(words)}
    tree = tree_of(words)

    def ids_in(word, text):
        found = cut(word, tree) or [unknown]
        if found == [unknown] and unknown not in ids:
            raise ValueError(f"Each word must be in the table. Received: {word!r:.100} in {text!r:.200}")
        return [ids[piece] for piece in found]

    def pieces(texts):
        return [[id for word in PIECE.findall(text) for id in ids_in(word, text)] for text in texts]

    def text_of(found):
        return " ".join(words[i] for i in found).replace(f" {INSIDE}", "")

    return Engine(pieces, ids.get, text_of, len(ids))


def letters(table, unknown):
    """Returns the engine of a table of letters: each letter of a text, each space and each sign is a row.

    Arguments as of `table`.
    """
    ids = {letter: i for i, letter in enumerate(table)}

    def ids_in(text):
        lacking = next((letter for letter in text if letter not in ids), None)
        if lacking is not None and unknown not in ids:
            raise ValueError(f"Each letter must be in the table. Received: {lacking!r} in {text!r:.200}")
        return [ids.get(letter, ids.get(unknown)) for letter in text]

    def text_of(found):
        return "".join(UNREADABLE if table[i] == unknown else table[i] for i in found)

    return Engine(lambda texts: [*map(ids_in, texts)], ids.get, text_of, len(ids))


def is_piece(text):
    """Returns whether a text is what a table may contain: a word, a sign, or a piece that continues a word."""
    rest = text.removeprefix(INSIDE)
    return PIECE.findall(rest) == [rest] and (rest == text or rest[0].isalnum() or rest[0] == "_")


def tree_of(words):
    """Returns a table as a tree of letters: dictionaries by letter, in which a row is below its last one."""
    tree = {}
    for word in words:
        branch = tree
        for letter in word:
            branch = branch.setdefault(letter, {})
        branch[ROW] = word
    return tree


def cut(word, tree):
    """Returns a word as pieces of a table, each the longest from the left, or an empty list if they do not make it.

    Args:
        word: Letters.
        tree: The table, as `tree_of` returns it, so that no letter is looked at that no row has in its place.
    """
    rows, start, branch = [], 0, tree
    inside = functools.reduce(lambda below, letter: below.get(letter, {}), INSIDE, tree)
    while start < len(word):
        row, end = None, start
        for place in range(start, len(word)):
            branch = branch.get(word[place])
            if branch is None:
                break
            if ROW in branch:
                row, end = branch[ROW], place + 1
        if row is None:
            return []
        rows.append(row)
        start, branch = end, inside
    return rows


def _merges(path):
    """Returns the path of the merges that belong to a `vocab.json`."""
    merges = path.with_name("merges.txt")
    if not merges.is_file():
        raise FileNotFoundError(f"{str(path)!r} needs merges.txt in the same folder. Received: none")
    return str(merges)


def _engine(built, settings, special=()):
    """Returns the engine of a `tokenizers.Tokenizer`, where some of its names are never cut, nor words added to it."""
    built.add_special_tokens([name for name in special if built.token_to_id(name) is not None])
    _add(built, settings.get(ADDED) or {})

    def pieces(texts):
        return [encoding.ids for encoding in built.encode_batch(texts, add_special_tokens=False)]

    size = max(built.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    special_tokens = [token.content for token in built.get_added_tokens_decoder().values() if not token.normalized]
    return Engine(pieces, built.token_to_id, built.decode, size, tuple(special_tokens))


def _add(built, added):
    """Adds words to a `tokenizers.Tokenizer`: a dictionary from ids to how each is found in a text."""
    from tokenizers import AddedToken

    flags = [{name: how[name] for name in HOW if name in how} for _, how in sorted(added.items())]
    built.add_tokens([AddedToken(how["content"], **more) for (_, how), more in zip(sorted(added.items()), flags)])
    for id, how in sorted(added.items()):
        if built.token_to_id(how["content"]) != id:
            raise ValueError(
                f"words that were added must follow its vocabulary. Received: {how['content']!r:.100} with the id {id} "
                f"in place of {built.token_to_id(how['content'])}"
            )


def _check_known(added, id_of):
    """Raises ValueError for words that were added and that a file of sentencepiece does not have."""
    for id, how in sorted(added.items()):
        if id_of(how["content"]) != id:
            raise ValueError(
                "words that were added are read from tokenizer.json: save it, too. "
                f"Received: {how['content']!r:.100} with the id {id}"
            )
