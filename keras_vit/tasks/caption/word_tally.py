"""Scores of generated texts."""

import numpy as np

from keras_vit.tasks.tally import Tally


class WordTally(Tally):
    """Exact match of texts, and the character error rate.

    The character error rate is the Levenshtein distance between predictions and texts (insertions, deletions and
    substitutions), over the characters of all texts. If the data are ids from the caller, ids count as characters.

    Args:
        text_of: Function from ids, `(length,)`, to a text; `None` for ids that end with 1 and are padded with 0.
    """

    scores = ("exact_match", "character_error_rate")

    def __init__(self, text_of=None):
        super().__init__()
        self.text_of = text_of or _letters
        self.exact = self.count = self.wrong = self.characters = 0

    def add(self, examples, outputs):
        """Counts a batch.

        Args:
            examples: Dictionary with `"texts"`, ids, `(batch, length)`.
            outputs: Generated ids, and a score in the last column, `(batch, length)`; see `CaptionWriter`.

        Returns:
            One minus the character error rate of each image, at least 0, `(batch,)`.
        """
        scores = []
        for written, text in zip(np.asarray(outputs), np.asarray(examples["texts"])):
            prediction, label = self.text_of(written[:-1].astype("int64")), self.text_of(text)
            wrong = distance(prediction, label)
            self.exact += prediction == label
            self.count += 1
            self.wrong += wrong
            self.characters += len(label)
            scores.append(max(1 - wrong / max(len(label), 1), 0))
        return np.array(scores)

    def result(self):
        if not self.count:
            return {}
        rate = self.wrong / max(self.characters, 1)
        return {"exact_match": self.exact / self.count, "character_error_rate": rate}


def _letters(ids):
    """Returns a text with one character for each id, up to the end."""
    ids = [int(i) for i in ids]
    return "".join(chr(0x100 + i) for i in (ids[: ids.index(1)] if 1 in ids else ids) if i)


def distance(first, second):
    """Returns the Levenshtein distance of two texts: the least number of insertions, deletions and substitutions."""
    row = np.arange(len(second) + 1)
    letters = np.array([*map(ord, second)])
    for i, letter in enumerate(map(ord, first), 1):
        above = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        row = np.concatenate([[i], above])
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))  # several insertions in a row
    return int(row[-1])
