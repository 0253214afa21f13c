"""Scores of images that were drawn from texts: a captioner reads the text back."""

import numpy as np

from keras_vit.generation.generate_text import stated_tokens
from keras_vit.models.captioner import is_captioner, parts_of, words_of
from keras_vit.models.inputs import image_shape
from keras_vit.preparing.pixel_range import range_of
from keras_vit.tasks.caption.caption_writer import caption_writer
from keras_vit.tasks.generate.sample_tally import FRECHET, SampleTally
from keras_vit.text import tokenizer
from keras_vit.text.unknown import unknown_in
from keras_vit.utils import checks
from keras_vit.utils.by_file import cached

BATCH = 64  # images that are read at once
EXACT = "exact_match"
SCORES = (EXACT, FRECHET)


class ReadBackTally(SampleTally):
    """Fréchet distance of thumbnails; with a judge, also the share of images of which it writes the text exactly.

    Texts are compared without upper case and with single spaces.

    Args:
        text_of: Function from ids, `(length,)`, to a text.
        judge: A source of `from_pretrained`: a captioner of images of the same size; or `None`.
    """

    def __init__(self, text_of, judge=None):
        super().__init__()
        self.text_of = text_of
        self.reader = judge and reader_of(judge)
        self.right = self.count = 0

    def add(self, examples, outputs):
        """Counts a batch, and returns whether each image is read back as its text, `(batch,)`, or `None`.

        Args:
            examples: `"originals"`, real images, `(batch, height, width, channels)`, 0..255; `"texts"`, ids, `(batch,
                length)`.
            outputs: Generated images, `(batch, height, width, channels)`, 0..255.
        """
        super().add(examples, outputs)
        if self.reader is None:
            return None
        texts = [_plain(self.text_of(ids)) for ids in np.asarray(examples["texts"])]
        right = np.array([_plain(read) == text for read, text in zip(self.reader(outputs), texts)], "float64")
        self.right += int(right.sum())
        self.count += len(right)
        return right

    def result(self):
        return {**({EXACT: self.right / self.count} if self.count else {}), **super().result()}


class Reader:
    """A captioner, as a function from images, `(batch, height, width, channels)`, 0..255, to a list of texts.

    Args:
        source: A source of `from_pretrained`.
    """

    def __init__(self, source):
        from keras_vit.checkpoints.pretrained import from_pretrained

        model = from_pretrained(source)
        if not is_captioner(model) or range_of(model) != checks.BYTES:
            raise ValueError(f"The judge of texts must be a captioner of images, 0 to 255. Received: judge={source!r}")
        words = words_of(parts_of(model)[1])
        tokens = stated_tokens(words)
        if tokens is None:
            raise ValueError(f"The judge must have a table of words, or name its tokenizer. Received: judge={source!r}")
        self.source = source
        self.shape = tuple(image_shape(model))
        self.words = tokens if isinstance(tokens, list) else []
        self.tokens = tokenizer(tokens, max(words.length, 3))
        self.write = caption_writer(model, words.length)

    def check(self, texts, shape=None):
        """Raises ValueError unless it knows the words of texts, and takes images of this shape."""
        lacking = {word for text in texts for word in unknown_in(self.tokens, self.words, text)}
        if lacking:
            raise ValueError(
                "The judge must know the words of the data, or it cannot write them. "
                f"Received: judge={self.source!r} without {', '.join(sorted(lacking))!s:.100}"
            )
        if shape not in (None, self.shape):
            raise ValueError(f"The judge {self.source!r} takes images of {self.shape}. Received: {shape}")

    def __call__(self, images):
        images = np.asarray(images, "float32")
        parts = [self.write(images[first : first + BATCH]) for first in range(0, len(images), BATCH)]
        return [text for part in parts for text in self.tokens.texts(part[:, :-1].astype("int64"))]


@cached(2)
def reader_of(source):
    """Returns the `Reader` of a source, cached: it is loaded once."""
    return Reader(source)


def _plain(text):
    return " ".join(text.lower().split())
