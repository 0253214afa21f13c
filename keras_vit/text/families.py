"""How each family of text towers makes ids of a text: a family is a row."""

import re
import string
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from keras_vit.text import engines

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def as_it_is(text):
    return text


def lower(text):
    """Returns a text in lower case, by Python's rules: a Greek capital sigma at the end of a word becomes ς."""
    return text.lower()


def composed(text):
    """As `lower`, in Unicode's form NFC, in which `é` is one letter."""
    return unicodedata.normalize("NFC", text).lower()


def spaced(text):
    """Returns a text in Unicode's form NFC, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def canonical(text):
    """Returns a text in lower case, without ASCII punctuation, with single spaces."""
    return re.sub(r"\s+", " ", text.lower().translate(_NO_PUNCTUATION)).strip()


def open_clip_canonical(text):
    """As `canonical`, but an underscore becomes a space."""
    return canonical(text.replace("_", " "))


class Family(NamedTuple):
    """A family of tokenizers.

    Args:
        clean: Function that is applied to each text first; what the files themselves say comes after it.
        pad: Name of the padding token.
        start: Name of what is put before a text, or `None`.
        end: Name of what is put after it; a text that is cut keeps it.
        read: Functions that read the pieces of words from a file, by its name; the first file that exists is read. Of
            families with one `model_type`, the first whose first file exists is meant.
        classes: Names of transformers' tokenizers of this family, without `Fast`.
        models: transformers' `model_type`s of this family.
    """

    clean: Callable
    pad: str
    start: str | None = None
    end: str | None = None
    read: dict[str, Callable] = {}
    classes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


FAMILIES = {
    "clip": Family(
        clean=lower,
        start="<|startoftext|>",
        end="<|endoftext|>",
        pad="<|endoftext|>",
        read={"tokenizer.json": engines.whole, "vocab.json": engines.clip},
        classes=("CLIPTokenizer",),
        models=("clip", "clip_text_model"),
    ),
    "siglip": Family(
        clean=canonical,
        end="</s>",
        pad="</s>",
        read={"spiece.model": engines.sentences, "tokenizer.json": engines.whole},
        classes=("SiglipTokenizer",),
        models=("siglip", "siglip_text_model"),
    ),
    "siglip2": Family(
        clean=lower,
        end="<eos>",
        pad="<pad>",
        read={"tokenizer.json": engines.whole},
        classes=("GemmaTokenizer", "Siglip2Tokenizer"),
        models=("siglip", "siglip_text_model", "siglip2", "siglip2_text_model"),
    ),
    "bert": Family(
        clean=as_it_is,
        start="[CLS]",
        end="[SEP]",
        pad="[PAD]",
        read={"tokenizer.json": engines.whole, "vocab.txt": engines.bert},
        classes=("BertTokenizer",),
        models=("bert", "vilt", "blip", "blip_text_model"),
    ),
    "gpt2": Family(
        clean=as_it_is,
        end="<|endoftext|>",
        pad="<|endoftext|>",
        read={"tokenizer.json": engines.whole, "vocab.json": engines.byte_level},
        classes=("GPT2Tokenizer",),
        models=("gpt2",),
    ),
    "roberta": Family(
        clean=as_it_is,
        start="<s>",
        end="</s>",
        pad="<pad>",
        read={"tokenizer.json": engines.whole, "vocab.json": engines.byte_level},
        classes=("RobertaTokenizer",),
        models=("roberta", "trocr"),
    ),
    "xlmr": Family(
        clean=as_it_is,
        start="<s>",
        end="</s>",
        pad="<pad>",
        read={"sentencepiece.bpe.model": engines.fairseq, "tokenizer.json": engines.whole},
        classes=("XLMRobertaTokenizer",),
        models=("xlm-roberta", "trocr"),
    ),
    "words": Family(clean=composed, start="<start>", end="<end>", pad="<pad>"),
    "letters": Family(clean=spaced, start="<start>", end="<end>", pad="<pad>"),
}
OWN = ("words", "letters")  # of a table of one's own; that of letters has the space
UNKNOWN = "<unknown>"  # of a table of words
