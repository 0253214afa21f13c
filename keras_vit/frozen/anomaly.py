"""Finds what is abnormal in images, from normal ones alone."""

import math
import os
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vit.explain.embedding import unit
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.patch_maps import PatchMaps, sampled
from keras_vit.frozen.patch_memory import PatchMemory, coreset, largest_of
from keras_vit.models.backbone import fill, merged_values
from keras_vit.models.metadata import keep
from keras_vit.preparing.preprocessing import evaluation_rule, listed
from keras_vit.utils import checks
from keras_vit.utils.files import destination
from keras_vit.utils.packed import check_packed

LARGEST = 10_000  # patches in the memory, unless the caller asks for more
FOLDS = 5
SAMPLE = 100_000  # patches of normal pictures in tiles that are in memory at once, unless more shall be remembered


class Scores(NamedTuple):
    """The result of `AnomalyDetector.score`."""

    images: np.ndarray  # float32, (images,), 0 to 2: higher is more abnormal; NaN if it was skipped
    maps: Any  # float32, (images, rows, columns), distance of each patch; in tiles a list of arrays, (rows, columns)


class AnomalyDetector:
    """Remembers the patch tokens of normal images, and scores others by their distance from these.

    Damm et al. 2025 (AnomalyDINO, arXiv:2405.14529): cosine distances of the last tokens of a frozen model, an image's
    score is the mean of its largest hundredth. Of many patches a coreset is remembered, as in PatchCore (Roth et al.
    2022, arXiv:2106.08265).

    Images are seen whole, whatever the evaluation of the model's source crops away: both sides are resized to the
    model's size, as anomalib does. AnomalyDINO keeps the aspect ratio instead; so does a model that is built for the
    aspect of the images, such as `from_pretrained("S/14-dinov2", image_size=(448, 602))` for those of 3 : 4.

    With `tiles`, images are not resized: overlapping tiles cover each, the normal ones too. The distances of a patch
    that several tiles see are averaged; the weight of a tile falls linearly to its edges. As many of the largest
    distances make an image's score as without tiles, a hundredth of one tile's, so that a small defect counts in a
    large picture too. An image is continued by its last pixels to whole patches.

    Args:
        model: A model, or what `from_pretrained` takes. The better its features, the better the detector: DINOv2's are
            known to be good.
        batch_size: Number of images that are computed at once; in tiles it is not used.
        tiles: Whether to see images at full size, in tiles; a dictionary has options. `size` is the number of pixels
            along the longer side of a tile, or `(height, width)`, by default the model's input; `overlap` the share of
            a tile's side that the next one has too, 0 to 0.5, by default 0.25. It is saved with the detector.

    Attributes:
        model: After `fit`, a `keras.Model` from pixels to `Scores.maps`, with its own weights: it can be exported
            like any other, and the JSON of the file has its `threshold` and how a `score` is made of a map.
            `preprocess` and exports resize whole images for it.
        threshold: After `fit`, the score above which an image counts as abnormal.

    Example:

    >>> detector = AnomalyDetector("S/14-dinov2").fit(good_files)
    >>> detector.score(files).images > detector.threshold
    """

    def __init__(self, model: keras.Model | str, *, batch_size: int = 32, tiles: bool | dict = False):
        self._embedder = _seeing_all(Embedder(model, tokens=True, batch_size=batch_size))
        self._maps = PatchMaps(self._embedder, tiles) if tiles is not False else None
        self.model = None

    @property
    def threshold(self):
        return self._memory().threshold

    def fit(
        self,
        images: Any,
        *,
        patches: int | None = None,
        false_alarms: float = 0.01,
        seed: int = 0,
        bad_images: str = "raise",
    ):
        """Remembers normal images.

        The threshold comes from these too: each image is scored by the patches of others, a fifth of the images at a
        time.

        Args:
            images: Normal images, two or more: files or other images that `preprocess` takes. Their tokens must fit
                into memory; in tiles, 100,000 at random do, as many of each image.
            patches: Number of patches to remember; `None` for all, at most 10,000.
            false_alarms: Share of normal images above the threshold, above 0 and below 1.
            seed: Random seed of the coreset and of the fifths.
            bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning and left out.

        Returns:
            The detector.

        Raises:
            ValueError: As `preprocess`; for fewer than two images, fewer patches than asked for, or features that are
                not finite.
        """
        checks.rate(false_alarms=false_alarms)
        checks.above_zero(false_alarms=false_alarms)
        checks.whole(seed=seed)
        images = listed(images)
        if len(images) < 2:
            raise ValueError(f"Two normal images or more are needed. Received: {len(images)}")
        if patches is not None:
            checks.positive(patches=patches)
        rng = np.random.default_rng(seed)
        if self._maps is None:
            _check_available(patches, len(images) * int(np.prod(self._embedder.shape[:2])), len(images))
            tokens = self._embedder(images, bad_images)
            samples = tokens[np.isfinite(tokens).all((1, 2, 3))]

            def score(memory, where):
                return image_scores(keras.ops.convert_to_numpy(_apply(memory, samples[where])))

        else:
            samples, score = self._in_tiles(images, patches or 0, seed, bad_images)
        if len(samples) < 2:
            raise ValueError(f"Two normal images or more are needed. Received: {len(samples)} that can be read")
        available = sum(math.prod(sample.shape[:-1]) for sample in samples)
        if self._maps is not None:
            _check_available(patches, available, len(samples))
        count = min(patches or LARGEST, available)
        scores = _of_others(samples, count, rng, score)
        threshold = float(np.quantile(scores, 1 - false_alarms))
        vectors = unit(samples if self._maps is None else np.concatenate(samples))
        tiles = self._maps and (*self._maps.tile, self._maps.overlap)
        memory = PatchMemory(count, threshold, tiles=tiles, name="memory", dtype="float32")
        outputs = memory(self._embedder.network.outputs[0])
        memory.memory.assign(vectors[coreset(vectors, count, seed)])
        self.model = keras.Model(self._embedder.network.input, outputs, name="anomaly")
        return self

    def score(self, images: Any, *, bad_images: str = "raise") -> Scores:
        """Scores images.

        Args:
            images: Image files or other images that `preprocess` takes.
            bad_images: `"raise"` for an image that cannot be read, or `"skip"`: it is named in a warning; its score
                and its map are NaN.

        Returns:
            A `Scores` named tuple: `images`, `(images,)`, and `maps`, `(images, rows, columns)`. With `tiles`, `maps`
            is a list of arrays, `(rows, columns)`: row i covers the i-th rows of pixels, as many as a patch has. Of
            an image that was skipped it is `(1, 1)`.

        Raises:
            ValueError: As `preprocess`, and before `fit`.
        """
        memory = self._memory()
        if self._maps is None:
            maps = self._embedder(images, bad_images, then=memory)
            return Scores(image_scores(maps), maps)
        maps = self._maps.each(images, lambda picture: self._map(picture, memory), bad_images)
        maps = [np.full((1, 1), np.nan, "float32") if heat is None else heat for heat in maps]
        return Scores(np.concatenate([self._score(heat) for heat in maps]), maps)

    def save(self, path: str | os.PathLike, overwrite: bool = False):
        """Writes the detector with its model into a `.keras` file; `AnomalyDetector.load` reads it.

        Raises:
            ValueError: Before `fit`, or for another ending.
            FileExistsError: If the file exists.
        """
        self._memory()
        checks.switch(overwrite=overwrite)
        path = checks.path("path", path)
        if path.suffix != ".keras":
            raise ValueError(f"`path` must end in .keras. Received: {str(path)!r}")
        with destination(path, overwrite) as temporary:
            self.model.save(temporary)

    @classmethod
    def load(cls, path: str | os.PathLike, *, batch_size: int = 32):
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is damaged or no detector.
        """
        path = checks.path("path", path)
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(path)!r}.")
        try:
            check_packed(path)
            model = keras.saving.load_model(path, compile=False)
            memory = model.layers[-1]
        except Exception as error:  # Keras raises many kinds for damaged files
            raise ValueError(f"{str(path)!r} cannot be read: {error}") from None
        if not isinstance(memory, PatchMemory):
            raise ValueError(f"{str(path)!r} must be an AnomalyDetector's file. Received: a model {model.name!r}")
        if not isinstance(memory.threshold, float) or not math.isfinite(memory.threshold):
            raise ValueError(f"{str(path)!r} must have a finite threshold. Received: threshold={memory.threshold!r}")
        tiles = {"size": (*memory.tiles[:2],), "overlap": memory.tiles[2]} if memory.tiles else False
        detector = cls(keras.Model(model.input, memory.input), batch_size=batch_size, tiles=tiles)
        detector.model = model
        return detector

    def _in_tiles(self, images, least, seed, bad_images):
        """Returns tokens of the tiles of each image that can be read, and the function that scores images by others.

        Each image is read twice: its tokens need not be in memory.
        """
        most = -(-max(SAMPLE, least) // len(images))

        def some(picture):
            return sampled(self._maps.tokens(picture), self._maps.count(picture), most, seed)[0]

        found = self._maps.each(images, some, bad_images)
        readable = [image for image, sample in zip(images, found) if sample is not None]

        def score(memory, where):
            held = [image for image, chosen in zip(readable, where) if chosen]
            return np.concatenate(self._maps.each(held, lambda picture: self._score(self._map(picture, memory))))

        return [sample for sample in found if sample is not None], score

    def _map(self, picture, memory):
        """Returns the map of an `InPatches`, `(rows, columns)`, by a `PatchMemory`."""
        rows = self._maps.rows(picture, lambda tokens: keras.ops.convert_to_numpy(memory(tokens))[..., None])
        return np.concatenate([*rows])[..., 0]

    def _score(self, heat):
        """Returns the score of a map in tiles, `(1,)`: the mean of as many distances as of one tile."""
        return image_scores(heat[None], largest_of(math.prod(self._maps.grid)))

    def _memory(self):
        if self.model is None:
            raise ValueError("The detector has seen no normal images: call fit first.")
        return self.model.layers[-1]


def image_scores(maps, largest=None):
    """Returns the mean of the largest distances of each map, `(images,)`: a hundredth of them, one at least."""
    flat = np.sort(maps.reshape(len(maps), -1), axis=1)
    return flat[:, -(largest or largest_of(flat.shape[1])) :].mean(1)


def _check_available(patches, available, images):
    if patches is not None and patches > available:
        rule = f"`patches` must be at most the {available} of {images} images"
        raise ValueError(f"{rule}. Received: patches={patches}")


def _seeing_all(embedder):
    """Returns an `Embedder` that sees whole images: itself if it does, else one with a copy of the network."""
    rule, size = evaluation_rule(embedder.model), list(embedder.model.input_shape[1:3])
    if rule["resize"] == "direct" and list(rule["full_size"]) == size:
        return embedder
    network = embedder.network
    copy = fill(keras.models.clone_model(network), merged_values(network))
    whole = {name: rule[name] for name in ("interpolation", "antialias")} | {"resize": "direct"}
    keep(copy, evaluation=whole)
    return Embedder(copy, tokens=True, batch_size=embedder.batch_size)


def _of_others(samples, count, rng, score):
    """Returns the score of each image by the patches of images in other fifths, at most `count` of them.

    Args:
        samples: Tokens of each image, `(..., width)`.
        count: Number of patches.
        rng: NumPy's generator.
        score: Function from a `PatchMemory`, and which images, booleans, to their scores.
    """
    folds = np.arange(len(samples)) % min(FOLDS, len(samples))
    rng.shuffle(folds)
    scores = np.zeros(len(samples), "float32")
    for fold in range(folds.max() + 1):
        others = unit(np.concatenate([sample for sample, other in zip(samples, folds != fold) if other]))
        others = others[rng.permutation(len(others))[:count]]
        memory = PatchMemory(len(others), dtype="float32")
        memory.build((None, None, None, others.shape[1]))
        memory.memory.assign(others)
        scores[folds == fold] = score(memory, folds == fold)
    return scores


def _apply(memory, tokens, images=16):
    """Returns a memory's distances, a few images at a time."""
    parts = [memory(tokens[first : first + images]) for first in range(0, len(tokens), images)]
    return keras.ops.concatenate(parts)
