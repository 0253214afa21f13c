"""Generates texts for batches of images of any size."""

import functools

import keras
import numpy as np

from keras_vit.generation.search import Rules
from keras_vit.generation.writer import Writer
from keras_vit.models.captioner import MARKS, parts_of, words_of


class CaptionWriter:
    """A function from images to the ids of generated texts, and a score for each.

    Args:
        model: A model from `captioner`. The function uses its weights at each call.
        length: Largest number of ids of a text, the start included.
        beams: Number of beams.
    """

    def __init__(self, model, length, beams=1):
        self.model = model
        self.marks = {mark: words_of(parts_of(model)[1]).metadata[mark] for mark in MARKS}
        self.rules = Rules(length, self.marks["end"], self.marks["pad"])
        self.beams = beams
        self.writer = None

    def __call__(self, images):
        """Generates a text for each image.

        The function is compiled for the size of the first batch. Smaller batches are padded.

        Args:
            images: Array, `(images, height, width, channels)`, 0..255.

        Returns:
            float32 array, `(images, length)`: `length - 1` ids after the start, padded, then the geometric mean of the
            words' probabilities, 0..1.
        """
        images = np.asarray(images)
        if self.writer is None or self.writer.size[0] < len(images):
            self.writer = Writer(self.model, len(images), 1, self.rules, self.beams)
            self.writer.compile(jit_compile=False)
        size = self.writer.size[0]
        filled = np.concatenate([images, np.repeat(images[-1:], size - len(images), axis=0)])
        begun = np.full((size, 1), self.marks["start"], "int32")
        outputs = self.writer.predict_on_batch({"images": filled, "texts": begun})
        ids, scores = (keras.ops.convert_to_numpy(each)[: len(images)] for each in outputs)
        return np.concatenate([ids[:, 1:], np.exp(scores)[:, None]], axis=1).astype("float32")


@functools.lru_cache(maxsize=4)
def caption_writer(model, length, beams=1):
    """Returns the `CaptionWriter` of a model, cached: it is compiled once."""
    return CaptionWriter(model, length, beams)
