"""What tasks with texts have in common: texts become rows of ids before anything else is done with them."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import ClassVar, Literal

import keras
import numpy as np

from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.text import learn_words, tokenizer
from keras_vit.text.families import UNKNOWN
from keras_vit.utils.checked import number
from keras_vit.utils.packed import check_packed
from keras_vit.utils.warned import quoted, warn

AT_ONCE = 10_000  # texts that are made ids of


@dataclass(frozen=True, repr=False)
class TextTask(Task):
    """A task whose model takes images and texts: `{"images": ..., "texts": ids}`.

    Args:
        words: Table of words, as `tokenizer` takes it; by default learned from the training texts, and kept in the
            model's file.
        tokens: Instead of `words`, a published tokenizer: a source of `tokenizer`.
        letters: Whether the table that is learned is one of letters, with spaces and upper case, as to read lines of
            text; else words are in lower case.
        vocabulary: Rows of a table that is learned, at most.
        length: Ids of a text. Longer texts are cut, and a warning says how many are.
        draw: Of several texts of an image, `"one"` is trained on each time, or `"some"`, joined in any order, as of
            tags.
        example: A text that the demo begins with.
    """

    asks: ClassVar[str] = "Text"  # what its text is called
    inputs = ("images", "texts")
    targets = ("texts",)
    refuses = refusals.each(refusals.MIXES, "Texts are not blended with their images.")

    words: tuple[str, ...] = ()
    tokens: str = ""
    letters: bool = False
    vocabulary: int = number(1000, low=3)
    length: int = number(32, low=2)
    draw: Literal["one", "some"] = "one"
    example: str = ""

    def check(self, recipe=None):
        super().check(recipe)
        if self.words and self.tokens:
            raise ValueError(
                "`words` and `tokens` exclude each other: a text has one tokenizer. "
                f"Received: {len(self.words)} words and tokens={self.tokens!r}"
            )
        if self.letters and self.tokens:
            raise ValueError(f"A published tokenizer is not one of letters. Received: letters=True, {self.tokens!r}")
        if self.letters and self.words and " " not in self.words:
            raise ValueError(f"A table of letters must have the space. Received: letters=True, {self.words!r:.100}")

    def on(self, source, arguments=None):
        texts = source.targets["texts"]
        if self.words or self.tokens or texts.dtype != object:
            return self
        return dataclasses.replace(self, words=tuple(learn_words(_all(texts), self.vocabulary, letters=self.letters)))

    def as_trained(self, source, start):
        """Returns the task with the words, or the tokenizer, of a trained model that it starts from.

        Args:
            source: As in `on`.
            start: A source of `from_pretrained`.

        Raises:
            ValueError: If neither the task nor the model says them.
        """
        if self.words or self.tokens or source.targets["texts"].dtype != object:
            return self
        metadata = stated_by(start)
        if not (metadata.get("words") or metadata.get("tokens")):
            raise ValueError(
                "A model to start from needs the tokenizer that it was trained with: task.tokens, or task.words. "
                f"Received: none with {str(start)!r}"
            )
        return dataclasses.replace(self, words=tuple(metadata.get("words") or ()), tokens=metadata.get("tokens") or "")

    def check_words_of(self, start):
        """Raises ValueError for other words than those of a trained model that the task starts from."""
        table = stated_by(start).get("words")
        if table and (self.words or self.tokens) and self.words != tuple(table):
            raise ValueError(
                f"Words must be those of the model to start from, {len(table)}: leave task.words and task.tokens out. "
                f"Received: {len(self.words)} others, tokens={self.tokens!r}"
            )

    def of_model(self, model):
        table = _stated_of(model).get("words")
        return dataclasses.replace(self, words=tuple(table)) if table and not self.words else self

    def rows(self):
        """Returns the rows of the table of embeddings, and the id that ends a text, or `None`."""
        table = self.ids_of() if self.words or self.tokens else None
        return (table.size, table.end) if table else (self.vocabulary, 1)

    def ids_of(self, long="cut"):
        """Returns the function from texts to ids."""
        if not self.words and not self.tokens:
            raise ValueError(f"{type(self).__name__} has no words: it learns them from data. Received: words=()")
        return _made(self.words, self.tokens, self.length, long)

    def read(self, source, training=False):
        texts = source.targets["texts"]
        ids = self._checked(texts) if texts.dtype != object else self._ids(texts, training)
        return dataclasses.replace(source, targets={**source.targets, "texts": ids})

    def _checked(self, ids):
        """Returns ids that the caller made."""
        rows, _ = self.rows()
        if ids.shape[1] != self.length or ids.max() >= rows:
            raise ValueError(
                f"Ids must be (texts, {self.length}), below {rows}: set task.length and task.vocabulary. "
                f"Received: shape={ids.shape}, up to {ids.max()}"
            )
        return ids

    def _ids(self, texts, training):
        """Returns the ids of each image's first text, `(n, length)`; to train on all, `(n, most, length)`, or -1."""
        ids_of, most = self.ids_of(), max(map(len, texts)) if training else 1
        chosen = [text for several in texts for text in several[:most]]
        rows = np.empty((len(chosen), self.length), "int32")
        cut = 0
        for start in range(0, len(chosen), AT_ONCE):
            part = chosen[start : start + AT_ONCE]
            cut += sum(len(ids) > self.length for ids in ids_of.ids(part))
            rows[start : start + AT_ONCE] = ids_of(part)
        if cut:
            warn(f"{cut} of {len(chosen)} texts have more than {self.length} ids and are cut: task.length.")
        self.warn_of_unknown(rows, chosen)
        if most == 1:
            return rows
        ids_of_images = np.full((len(texts), most, self.length), -1, "int32")
        ids_of_images[np.arange(most) < np.array([len(several) for several in texts])[:, None]] = rows
        return ids_of_images

    def warn_of_unknown(self, rows, texts):
        """Warns of texts, and their rows of ids, with words that the table lacks: the model cannot tell these apart."""
        if UNKNOWN not in self.words:
            return
        lacking = np.flatnonzero((rows == self.words.index(UNKNOWN)).any(axis=1))
        if len(lacking):
            words = dict.fromkeys(word for i in lacking[:AT_ONCE] for word in self.unknown_in(texts[i]))
            warn(
                f"{len(lacking)} of {len(rows)} texts have words or signs that the model does not know: "
                f"{quoted([*words])}."
            )

    def unknown_in(self, text):
        """Returns a text's words or signs that a table of words lacks, each once."""
        if UNKNOWN not in self.words:
            return []
        return [word for word, ids in self._parts(text) if self.words.index(UNKNOWN) in ids]

    def pieced_in(self, text):
        """Returns a text's words that a table of words has in pieces alone: rare ones, and those that are new."""
        unknown = self.unknown_in(text)
        return [word for word, ids in self._parts(text) if len(ids) > 1 and word not in unknown]

    def _parts(self, text):
        """Returns each word or sign of a text once, with its ids without start and end."""
        table = self.ids_of()
        parts = [*dict.fromkeys(table.parts(text))]
        return [
            (part, [id for id in ids if id not in (table.start, table.end)])
            for part, ids in zip(parts, table.ids(parts))
        ]

    def prepare(self, examples, seed):
        """Draws one of each image's texts, or some; `"first"` is then the one that is measured."""
        from keras_vit.data.augment.texts import DRAWS

        ids = examples["texts"]
        if ids.shape.rank == 2:
            return examples
        marks = self.ids_of()
        return {**examples, "texts": DRAWS[self.draw](ids, seed, marks.start, marks.end, marks.pad), "first": ids[:, 0]}

    def text_of(self, ids):
        """Returns the text of a row of ids up to its end, `""` for ids of the caller."""
        return self.ids_of().texts([ids])[0].strip() if self.words or self.tokens else ""


@functools.lru_cache(maxsize=8)
def _made(words, tokens, length, long):
    """Returns the `Tokenizer` of a task: the same for the same words, since reading a published one takes a second."""
    return tokenizer(list(words) or tokens, length, long=long)


def _all(texts):
    return [text for several in texts for text in several]


def stated_by(source):
    """Returns what `_stated_of` does of a run or a `.keras` file; of any other source an empty dictionary."""
    from keras_vit.checkpoints.own_models import own_file

    path = own_file(source)
    if path and not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if not path:
        return {}
    check_packed(path)
    return _stated_of(keras.models.load_model(path, compile=False))


def _stated_of(model):
    """Returns the metadata of a model's table of words, such as `"words"` or `"tokens"`."""
    layers = [layer for part in (model, *model.layers) for layer in getattr(part, "layers", ())]
    return next((layer.metadata for layer in layers if layer.name == "words"), {})
