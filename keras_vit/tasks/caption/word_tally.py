"""Scores of written texts."""

import numpy as np

from keras_vit.tasks.tally import Tally


class WordTally(Tally):
    """The share of texts that are written exactly, and the share of wrong characters.

    The character error rate is the number of insertions, deletions and changes that turn what was written into the
    text (Levenshtein's distance), over the characters of all texts. Of ids that the caller made, ids are counted.

    Args:
        text_of: Function from a row of ids to its text; `None` for ids that end with 1 and are padded with 0.
    """

    scores = ("exact_match", "character_error_rate")

    def __init__(self, text_of=None):
        super().__init__()
        self.text_of = text_of or _letters
        self.exact = self.count = self.wrong = self.characters = 0

    def add(self, examples, outputs):
        """Counts a batch.

        Args:
            examples: `"texts"`, the ids of the texts, `(batch, length)`.
            outputs: Ids that were written, and their scores, as from `Caption`.

        Returns:
            For each image the share of characters that are right, at least 0.
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
    """Returns a letter for each id, up to the end."""
    ids = [int(i) for i in ids]
    return "".join(chr(0x100 + i) for i in (ids[: ids.index(1)] if 1 in ids else ids) if i)


def distance(first, second):
    """Returns the least number of insertions, deletions and changes that turn one text into another."""
    row = np.arange(len(second) + 1)
    letters = np.array([*map(ord, second)])
    for i, letter in enumerate(map(ord, first), 1):
        above = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        row = np.concatenate([[i], above])
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))  # insertions, one after the other
    return int(row[-1])
