"""The common part of tasks with texts: a tokenizer turns texts into ids before training."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import keras
import numpy as np

from keras_vit.models.text import text_tower
from keras_vit.tasks import refusals
from keras_vit.tasks.base import Task
from keras_vit.text import learn_words, tokenizer
from keras_vit.text.families import FAMILIES, UNKNOWN
from keras_vit.text.unknown import parts_of, unknown_in
from keras_vit.utils import checks
from keras_vit.utils.by_file import cached
from keras_vit.utils.checked import number
from keras_vit.utils.packed import check_packed
from keras_vit.utils.warned import quoted, warn

AT_ONCE = 10_000  # texts to tokenize in a batch
TEXT = {"width": 256, "depth": 4, "num_heads": 4}  # arguments of a text tower that is trained from scratch
OWN = ("vocabulary", "length", "end", "projection", "metadata", "name")  # its arguments that the task sets


class ReadsTexts:
    """What tasks with texts do with them; their fields are those of `TextTask`."""

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

    def as_trained(self, source, start, published=False):
        """Returns the task with the vocabulary, or the tokenizer, of a trained model that it starts from.

        Args:
            source: A `data.memory.Source`, as in `on`.
            start: A source of `from_pretrained`.
            published: Whether a folder or an address has the tokenizer too.

        Raises:
            ValueError: If neither the task nor the model has a vocabulary or a tokenizer.
        """
        if self.words or self.tokens or source.targets["texts"].dtype != object:
            return self
        known = _known(stated_by(start) or ({"tokens": start} if published else {}))
        if not (known["words"] or known["tokens"]):
            raise ValueError(
                "A model to start from needs the tokenizer that it was trained with: task.tokens, or task.words. "
                f"Received: none with {str(start)!r}"
            )
        return dataclasses.replace(self, **known)

    def check_words_of(self, start):
        """Raises ValueError if the vocabulary differs from the one of a trained model, `start`."""
        table = stated_by(start).get("words")
        if table and (self.words or self.tokens) and self.words != tuple(table):
            raise ValueError(
                f"Words must be those of the model to start from, {len(table)}: leave task.words and task.tokens out. "
                f"Received: {len(self.words)} others, tokens={self.tokens!r}"
            )

    def of_model(self, model):
        if self.words or self.tokens:
            return self
        return dataclasses.replace(self, **_known(_stated_of(model)))

    def new_tower(self, options, dtype=None):
        """Returns a `text_tower` for the task's ids and words, without what `OWN` names.

        Args:
            options: Other arguments of `text_tower`; `TEXT` has the sizes that they may leave out.
            dtype: Precision policy.
        """
        rows, end = self.rows()
        metadata = {"words": list(self.words)} if self.words else {"tokens": self.tokens}
        pooled = {"pooling": "first"} if end is None else {"pooling": "end", "end": end}  # some tokenizers have no end
        options = {**TEXT, "causal": False, "dtype": dtype, **pooled, **options}
        return text_tower(vocabulary=rows, length=self.length, metadata=metadata, **options)

    def rows(self):
        """Returns the size of the vocabulary, and the id that ends a text, or `None`."""
        table = self.ids_of() if self.words or self.tokens else None
        return (table.size, table.end) if table else (self.vocabulary, 1)

    def ids_of(self, long="cut"):
        """Returns the `Tokenizer`: from a list of texts to int32 ids, `(texts, length)`; `long` says if it cuts."""
        if not self.words and not self.tokens:
            raise ValueError(f"{type(self).__name__} has no words: it learns them from data. Received: words=()")
        return _made(self.tokens, self.words, self.length, long)

    def ids_of_nothing(self):
        """Returns the ids of a text without words, int32 `(length,)`; of ids from the caller, the end alone."""
        if self.words or self.tokens:
            return self.ids_of()([""])[0]
        return np.array([self.rows()[1]] + [0] * (self.length - 1), "int32")

    def read(self, source, training=False):
        texts = source.targets["texts"]
        ids = self._checked(texts) if texts.dtype != object else self._ids(texts, training)
        return dataclasses.replace(source, targets={**source.targets, "texts": ids})

    def _checked(self, ids):
        """Returns ids from the caller, `(texts, length)`; raises ValueError unless the task can use them."""
        rows, _ = self.rows()
        if ids.shape[1] != self.length or ids.max() >= rows:
            raise ValueError(
                f"Ids must be (texts, {self.length}), below {rows}: set task.length and task.vocabulary. "
                f"Received: shape={ids.shape}, up to {ids.max()}"
            )
        return ids

    def _ids(self, texts, training):
        """Returns int32 ids, `(images, length)`; in training of all texts, `(images, most, length)`, padded with -1."""
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
        """Warns if texts, with ids `rows`, `(texts, length)`, have unknown words: the model cannot tell these apart."""
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
        """Returns the words or characters of a text that are not in the vocabulary, without repetition."""
        return unknown_in(self.ids_of(), self.words, text) if UNKNOWN in self.words else []

    def pieced_in(self, text):
        """Returns the words of a text that the vocabulary has only in pieces: rare or new words."""
        unknown = self.unknown_in(text)
        return [word for word, ids in parts_of(self.ids_of(), text) if len(ids) > 1 and word not in unknown]

    def prepare(self, examples, seed):
        """Draws one text of each image, or several, joined, if images have several.

        Args:
            examples: Dictionary with `"texts"`, int32 ids, `(batch, length)` or `(batch, most, length)`, -1 as padding.
            seed: Integer tensor, `(2,)`.

        Returns:
            The examples with `"texts"`, `(batch, length)`. If images had several texts, also with `"first"`,
            `(batch, length)`, the first text of each image.
        """
        from keras_vit.data.augment.texts import DRAWS

        ids = examples["texts"]
        if ids.shape.rank == 2:
            return examples
        marks = self.ids_of()
        return {**examples, "texts": DRAWS[self.draw](ids, seed, marks.start, marks.end, marks.pad), "first": ids[:, 0]}

    def text_of(self, ids):
        """Returns the text of ids, `(length,)`, up to its end; `""` without a tokenizer."""
        return self.ids_of().texts([ids])[0].strip() if self.words or self.tokens else ""


@dataclass(frozen=True, repr=False)
class TextTask(ReadsTexts, Task):
    """Base class of a task whose model takes images and texts.

    The model takes a dictionary: `"images"`, `(batch, height, width, channels)`, 0..255, and `"texts"`, int32 ids,
    `(batch, length)`.

    Args:
        words: Vocabulary, as `tokenizer` takes it; by default learned from the training texts. It is saved with the
            model.
        tokens: Instead of `words`, a published tokenizer: a source of `tokenizer`.
        letters: Whether to learn a vocabulary of characters, with spaces and upper case, such as to read lines of text;
            else of lower-case words.
        vocabulary: Largest size of a learned vocabulary.
        length: Number of ids of a text. Longer texts are cut, with a warning that counts them.
        draw: If images have several texts: `"one"` trains on one text at a time, drawn at random; `"some"` on several,
            joined in random order, as for tags.
        example: Text that the demo shows first.
    """

    asks: ClassVar[str] = "Text"  # label of the text field in the demo
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


@cached(8)
def _made(tokens, words, length, long):
    """Returns a task's `Tokenizer`, cached: to read a published one takes a second."""
    return tokenizer(list(words) or tokens, length, long=long)


def _all(texts):
    return [text for several in texts for text in several]


def sizes_for(start, image_size):
    """Returns the sizes with which `from_pretrained` loads `task.start`: those of a run stay as they are."""
    from keras_vit.checkpoints.own_models import own_file

    return {} if image_size is None or own_file(start) else {"image_size": image_size}


def check_images(image, image_size=None, channels=None):
    """Raises ValueError unless an image tower of `task.start` takes images of a recipe's `model`, where it says."""
    if image_size is not None and image.input_shape[1:3] != checks.pair("image_size", image_size):
        raise ValueError(
            f"Images must be as large as the tower of task.start takes them, {image.input_shape[1:3]}. "
            f"Received: model.image_size={image_size}"
        )
    if channels not in (None, image.input_shape[-1]):
        raise ValueError(
            f"The image tower of task.start takes {image.input_shape[-1]} channels. Received: model.channels={channels}"
        )


def stated_by(source):
    """Returns the metadata of the vocabulary in a run or a `.keras` file; `{}` for any other source."""
    from keras_vit.checkpoints.own_models import own_file
    from keras_vit.checkpoints.pretrained import location

    path = own_file(location(source) or source)
    if path and not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if not path:
        return {}
    check_packed(path)
    return _stated_of(keras.models.load_model(path, compile=False))


def _known(metadata):
    """Returns the options `words` and `tokens` by the metadata of a layer `words`.

    Of a published file it may have the tokenizer's family alone, which is no address.
    """
    tokens = metadata.get("tokens") or ""
    return {"words": tuple(metadata.get("words") or ()), "tokens": "" if tokens in FAMILIES else tokens}


def _stated_of(model):
    """Returns the metadata of a model's layer `words`, such as `"words"` or `"tokens"`; `{}` without it."""
    layers = [layer for part in (model, *model.layers) for layer in getattr(part, "layers", ())]
    return next((layer.metadata for layer in layers if layer.name == "words"), {})
