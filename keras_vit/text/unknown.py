"""Which words of a text a table lacks."""

from keras_vit.text.families import UNKNOWN


def parts_of(table, text):
    """Returns each word or character of a text once, with its ids without start and end.

    Args:
        table: A `Tokenizer`.
        text: A string.
    """
    parts = [*dict.fromkeys(table.parts(text))]
    return [
        (part, [id for id in ids if id not in (table.start, table.end)]) for part, ids in zip(parts, table.ids(parts))
    ]


def unknown_in(table, words, text):
    """Returns the words or characters of a text that a table of words lacks, without repetition.

    Args:
        table: A `Tokenizer`.
        words: The table of words that it was made of; empty for a published tokenizer, whose pieces write any word.
        text: A string.
    """
    if UNKNOWN not in words:
        return []
    lacking = words.index(UNKNOWN)
    return [part for part, ids in parts_of(table, text) if lacking in ids]
