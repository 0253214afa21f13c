"""A model as a function from images to vectors, and how to tell two of them apart."""

import functools
import hashlib
import json
import os
import pathlib
from typing import NamedTuple

import keras
import numpy as np

from keras_vit.checkpoints.pretrained import from_pretrained
from keras_vit.explain import features
from keras_vit.explain.embedding import vectors_of
from keras_vit.models.backbone import backbone, image_tower, input_of
from keras_vit.models.by_frames import by_frames, is_by_frames
from keras_vit.models.inputs import CLIPS
from keras_vit.preparing.preprocessing import listed
from keras_vit.traits import Traits
from keras_vit.utils import checks, reading
from keras_vit.utils.feeding import run
from keras_vit.utils.folders import shown
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.warned import left_out

BAD = ("raise", "skip")  # what can be done about images that cannot be read
RATES = {"dropout", "attention_dropout", "stochastic_depth", "rate"}  # of training
SILENT = {"name", "metadata", "trainable", "dtype", *RATES}  # do not change vectors


class Batch(NamedTuple):
    """What was found in a batch of images."""

    images: list  # as they were given
    read: list  # positions of those that could be read
    vectors: np.ndarray  # of these
    faults: dict  # why others could not be read, by position


class Embedder:
    """A frozen model that turns images into vectors.

    Args:
        model: A Keras model, whose head is left out, of two towers the image tower; or what `from_pretrained` takes:
            the name of published or shipped weights, a run directory, a file. A model without pooling gets average
            pooling if it is named.
        tokens: Whether an image becomes a vector for each patch, `(rows, columns, width)`, instead of one, `(width,)`.
            They are the last block's, after the final norm if it comes before the pooling.
        batch_size: Number of images that are computed at once.
        projected: Whether to keep the head of a model of images and texts, such as CLIP's projection: vectors are then
            those that are compared with texts.
        frames: For a model of images: the frames of a clip whose vectors are averaged, as `by_frames` does. Vectors are
            then of clips, and those that are compared with texts. `None` for images.
    """

    def __init__(self, model, tokens=False, batch_size=32, projected=False, frames=None):
        checks.positive(batch_size=batch_size)
        checks.switch(tokens=tokens, projected=projected)
        if tokens and projected:
            raise ValueError("Vectors of patches have no projection. Received: tokens=True, projected=True")
        if tokens and frames is not None:
            raise ValueError(f"Vectors of patches are not averaged over frames. Received: tokens=True, frames={frames}")
        self.model = _built(model, projected, frames)
        about = Traits(self.model)
        head = head_of_texts(about)
        if projected and head is None and not about.features and not is_by_frames(self.model):
            raise ValueError(
                "`projected` is for models of images and texts, such as CLIP. "
                f"Received: {self.model.name!r}, whose head is for something else"
            )
        self.prepare = about.preparation
        self.name = "" if isinstance(model, keras.Model) else _name(model)
        self.batch_size = max(batch_size // (frames or 1), 1)
        self.tokens = tokens
        if tokens:
            norm = [layer for layer in backbone(self.model).layers if layer.name == "norm"]
            built = features(self.model, [-1], norm=bool(norm) and len(norm[0].output.shape) == 3)
            inputs, vectors = built.inputs[0], built.outputs[0]
        else:
            vectors = self.model.outputs[0] if projected else vectors_of(self.model)
            if len(vectors.shape) != 2:
                raise ValueError(
                    f"{self.model.name!r} must compute one vector for each image. Received: outputs "
                    f"{tuple(vectors.shape)}; pass tokens=True, or build it with pooling='gap'"
                )
            inputs = input_of(self.model, [vectors])
        self.projection = None if projected or tokens else head
        self.network = keras.Model(inputs, vectors)
        self.shape = tuple(vectors.shape[1:])

    @property
    def of_clips(self):
        """Whether it takes clips in place of images."""
        return len(self.prepare.shape) == CLIPS

    @property
    def vectors(self):
        """Which vectors of the model these are, in words."""
        if self.tokens:
            return "a vector for each patch"
        own = self.network.outputs[0] is self.model.outputs[0]
        return "the model's output" if own else f"what enters the layer {self.model.layers[-1].name!r}"

    def fingerprint(self):
        """Returns a text that differs for other weights, layers, image sizes, preprocessing or kinds of vectors."""
        about = {
            "images": list(self.model.input_shape[1:]),
            "vectors": list(self.shape),
            "rule": self.prepare.rule,
            "layers": [_computes(layer) for layer in sublayers(self.network) if not isinstance(layer, keras.Model)],
        }
        digest = hashlib.blake2b(json.dumps(about, sort_keys=True, default=str).encode(), digest_size=16)
        for weight in self.network.weights:
            digest.update(keras.ops.convert_to_numpy(weight).tobytes())
        return digest.hexdigest()

    def read(self, image):
        """Returns an image's pixels, `(1, height, width, channels)`, as `preprocess` makes them; raises like it."""
        return self.prepare(image)

    def __call__(self, images, bad_images="raise", then=np.asarray):
        """Returns the vectors of images of any sizes, `(images, ...)`, float32.

        Args:
            images: Image files, or what `preprocess` takes.
            bad_images: `"raise"`, or `"skip"`: an image that cannot be read is named in a warning; its row is NaN.
            then: Function that is applied to the vectors of each batch, to return its results instead.

        Raises:
            ValueError: As `preprocess`, for an image whose features are not finite, and if no image can be read.
        """
        checks.one_of("bad_images", bad_images, BAD)
        parts, rows, faults, count = [], [], [], 0
        for batch in self.batches(images, strict=bad_images == "raise"):
            if batch.read:
                parts.append(keras.ops.convert_to_numpy(then(batch.vectors)))
            rows += [count + i for i in batch.read]
            faults += batch.faults.values()
            count += len(batch.images)
        if not count:
            raise ValueError("`images` must contain an image. Received: an empty list")
        if not parts:
            raise ValueError(f"No image could be read. The first of {count}: {faults[0]}")
        if not faults:
            return np.concatenate(parts)
        left_out(f"{len(faults)} of {count} images, which cannot be read", [shown(fault) for fault in faults])
        vectors = np.full((count, *parts[0].shape[1:]), np.nan, "float32")
        vectors[rows] = np.concatenate(parts)
        return vectors

    def batches(self, images, strict=False):
        """Reads images ahead, computes their vectors batch by batch, and goes past those that cannot be read.

        Args:
            images: Image files, or what `preprocess` takes.
            strict: Whether to raise for an image that cannot be read.

        Yields:
            A `Batch`.

        Raises:
            ValueError: For an image whose features are not finite.
        """
        images = listed(images, len(self.prepare.shape))
        compute = functools.partial(run, self.network)
        for batch in reading.batches(self.read, images, self.batch_size):
            if strict and batch.errors:
                raise next(iter(batch.errors.values()))
            faults = {i: str(error) for i, error in batch.errors.items()}
            yield self._batch(compute, batch.images, batch.pixels, faults)

    def answered(self, images, answer):
        """Yields what is made of each image's vector, batch by batch, in their order.

        Args:
            images: Image files, or what `preprocess` takes.
            answer: Function from the vectors of a batch to one answer each.

        Yields:
            The image, its answer and `None`; or the image, `None` and why it cannot be read.
        """
        for batch in self.batches(images):
            answers = dict(zip(batch.read, answer(batch.vectors))) if batch.read else {}
            for i, image in enumerate(batch.images):
                yield image, answers.get(i), batch.faults.get(i)

    def _batch(self, compute, images, pixels, faults):
        if not pixels:
            return Batch(images, [], np.zeros((0, *self.shape), "float32"), faults)
        if several := next((array.shape for array in pixels.values() if len(array) != 1), None):
            raise ValueError(f"Each image must be one picture; of clips, pass `frames`. Received: shape {several}")
        full = np.concatenate([*pixels.values()])
        fill = [(0, self.batch_size - len(full)), *[(0, 0)] * (full.ndim - 1)]
        padded = np.pad(full, fill)  # one size: compiled once
        vectors = np.asarray(compute(padded), "float32")[: len(full)]
        wrong = [i for i, finite in zip(pixels, np.isfinite(vectors).reshape(len(full), -1).all(1)) if not finite]
        if wrong:
            image = images[wrong[0]]
            named = repr(str(image)) if isinstance(image, (str, os.PathLike)) else "an image"
            raise ValueError(f"{self.model.name!r} must return finite features. Received: NaN or infinity for {named}")
        return Batch(images, [*pixels], vectors, faults)


def _computes(layer):
    """Returns what of a layer's configuration changes its outputs."""
    return [type(layer).__name__, {k: v for k, v in layer.get_config().items() if k not in SILENT}]


def _name(model):
    """Returns the name of a model as it can be given in any folder."""
    text, path = str(model), pathlib.Path(model).expanduser()
    return str(path.resolve()) if path.exists() and (os.sep in text or path.suffix) else text


def head_of_texts(about):
    """Returns the dense layer that projects vectors into the space of texts as an array, its bias as the last row.

    `None` for a model without such a layer: of images alone, or SigLIP, whose own vectors are compared with texts.

    Args:
        about: The `Traits` of a model.
    """
    head = about.model.layers[-1]
    if not isinstance(head, keras.layers.Dense) or about.gives != "embeddings":
        return None
    kernel = keras.ops.convert_to_numpy(head.kernel)
    bias = np.zeros(head.units) if head.bias is None else keras.ops.convert_to_numpy(head.bias)
    return np.vstack([kernel, bias]).astype("float32")  # (width + 1, numbers)


def _built(model, projected=False, frames=None):
    """Returns a Keras model, or the model of a name, without its head, unless `projected`; with `frames`, of clips."""
    if frames is not None:
        return _by_frames(model, frames)
    if projected:
        return image_tower(model) if isinstance(model, keras.Model) else from_pretrained(model, part="image")
    if isinstance(model, keras.Model):
        return image_tower(model)
    checks.path("model", model)
    built = from_pretrained(model, part="image", num_classes=0)
    return built if len(built.output_shape) == 2 else from_pretrained(model, part="image", num_classes=0, pooling="gap")


def _by_frames(model, frames):
    """Returns a model of clips by an image model's vectors: those compared with texts, or those before its head."""
    checks.positive(frames=frames)
    image = _built(model, projected=True)
    if head_of_texts(Traits(image)) is None:
        vectors = vectors_of(image)
        image = image if vectors is image.outputs[0] else keras.Model(image.inputs[0], vectors)
    return by_frames(image, frames)
