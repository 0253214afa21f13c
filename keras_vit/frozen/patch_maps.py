"""Maps of pictures larger than the model, an entry for each patch: by the tiles of `keras_vit.utils.tiles`."""

import math
import os

import numpy as np

from keras_vit.preparing.by_windows import NotReadError, at_own_size
from keras_vit.preparing.preprocessing import listed
from keras_vit.tasks.in_tiles import DEFAULTS, NotFiniteError, check_tiling, finite, fitted, tile_of
from keras_vit.utils import checks, reading
from keras_vit.utils.feeding import run
from keras_vit.utils.folders import shown
from keras_vit.utils.tiles import outputs_of, rows_of, starts, window
from keras_vit.utils.warned import left_out

OPTIONS = ("size", "overlap")


class InPatches:
    """A picture measured in patches, whose windows are pixels: in `rows_of` it takes the place of a picture.

    All tiles then begin at a patch, so those that overlap have patches in common. A picture is continued by its last
    pixels to whole patches, and to a whole tile.

    Args:
        picture: What `at_own_size` returns.
        patch: `(height, width)` of a patch in pixels.
        least: `(rows, columns)` of patches that a tile has.

    Attributes:
        own: `(rows, columns)` of the patches that the picture itself has a part of.
    """

    def __init__(self, picture, patch, least):
        self.picture = picture
        self.patch = patch
        self.own = tuple(-(-side // pixels) for side, pixels in zip(picture.shape, patch))
        self.shape = (*map(max, self.own, least), math.prod(patch) * picture.shape[2])

    def read(self, top, left, height, width):
        """Returns the pixels of a window that is given in patches."""
        (y, x), wanted = ([n * side for n, side in zip(pair, self.patch)] for pair in ((top, left), (height, width)))
        return window(self.picture, y, x, wanted)


class PatchMaps:
    """Makes maps of whole pictures by an embedder of patches.

    Args:
        embedder: An `Embedder` with `tokens`.
        tiles: `True`, or a dictionary: `size`, pixels of the picture along the longer side of a tile or
            `(height, width)`, by default the model's; and `overlap`, a share of a tile's side, 0.25 by default.

    Raises:
        ValueError: For other options, a tile whose pixels the model's patches do not divide, or a model of clips.
    """

    def __init__(self, embedder, tiles):
        if not isinstance(tiles, (bool, dict)):
            raise ValueError(f"`tiles` must be True, False or a dictionary. Received: tiles={checks.shown(tiles)}")
        if embedder.of_clips:
            raise ValueError(f"`tiles` is for models of images. Received: {embedder.model.name!r}, which takes clips")
        given = tiles if isinstance(tiles, dict) else {}
        tiling = {**DEFAULTS, **given}
        check_tiling("tiles", tiling, given, OPTIONS)
        size = embedder.prepare.shape[-3:]
        self.embedder = embedder
        self.overlap = tiling["overlap"]
        self.tile = tile_of(tiling, size)
        self.grid = embedder.shape[:2]
        if any(side % count for side, count in zip(self.tile, self.grid)):
            near = tuple(max(round(side / count), 1) * count for side, count in zip(self.tile, self.grid))
            raise ValueError(
                f"A tile must have a multiple of {self.grid[0]} x {self.grid[1]} pixels, the model's patches, such as "
                f"{near[0]} x {near[1]}. Received: {self.tile[0]} x {self.tile[1]}"
            )
        self.patch = tuple(side // count for side, count in zip(self.tile, self.grid))
        self.size = (*self.grid, math.prod(self.patch) * size[2])  # of a tile, as `InPatches` measures pictures
        self.features = fitted(lambda pixels: finite(run(embedder.network, pixels)), self.tile, size)

    def each(self, images, work, bad_images="raise"):
        """Returns what a function makes of each picture, an `InPatches`; `None` of one that cannot be read.

        One picture is open at a time.

        Args:
            images: Image files, or what `preprocess` takes.
            work: The function.
            bad_images: `"raise"`, or `"skip"`: a picture that cannot be read is named in a warning.

        Raises:
            ValueError: As `Embedder.__call__`.
        """
        checks.one_of("bad_images", bad_images, ("raise", "skip"))
        results, faults = [], []
        if not (images := listed(images)):
            raise ValueError("`images` must contain an image. Received: an empty list")
        for batch in reading.batches(lambda image: at_own_size(self.embedder.prepare, image), images, 1, ahead=1):
            (image,), error = batch.images, batch.errors.get(0)
            if error is None:
                try:
                    results.append(work(InPatches(batch.pixels.pop(0), self.patch, self.grid)))
                    continue
                except NotReadError as damaged:
                    error = damaged
                except NotFiniteError:
                    named = repr(str(image)) if isinstance(image, (str, os.PathLike)) else "an image"
                    raise ValueError(
                        f"{self.embedder.model.name!r} must return finite features. Received: NaN or infinity for "
                        f"{named}"
                    ) from None
            if bad_images == "raise":
                raise error
            faults.append(str(error))
            results.append(None)
        if len(faults) == len(images):
            raise ValueError(f"No image could be read. The first of {len(images)}: {faults[0]}")
        if faults:
            left_out(f"{len(faults)} of {len(images)} images, which cannot be read", [*map(shown, faults)])
        return results

    def rows(self, picture, then=None):
        """Yields the rows of a picture's map from top to bottom, some at a time: `(rows, columns, numbers)`.

        Args:
            picture: An `InPatches`.
            then: Function from the tokens of tiles, `(batch, rows, columns, width)`, to as many rows and columns, whose
                results are blended; `None` to blend the tokens.
        """
        function = self.features if then is None else (lambda pixels: np.asarray(then(self.features(pixels))))
        done = 0
        for rows in rows_of(function, picture, self.size, self.overlap, step=1):
            rows = rows[: picture.own[0] - done, : picture.own[1]]
            done += len(rows)
            if len(rows):
                yield rows

    def tokens(self, picture):
        """Yields the tokens of each tile of a picture, `(patches, width)`, without those beyond its edges."""
        rows, columns = map(min, picture.own, self.grid)
        for _, tokens in outputs_of(self.features, picture, self.size, self.overlap, step=1):
            yield tokens[:rows, :columns].reshape(rows * columns, -1)

    def count(self, picture):
        """Returns the number of all vectors in `tokens`."""
        tiles = [len(starts(*pair, self.overlap, 1)) for pair in zip(picture.shape, self.grid)]
        return math.prod(tiles) * math.prod(map(min, picture.own, self.grid))


def sampled(parts, count, most, seed=0):
    """Returns some of the vectors that an iterator yields, in their order, and their positions; all if they are few.

    Args:
        parts: Iterator of arrays, `(some, width)`.
        count: Number of all vectors.
        most: Number of vectors to choose, at most, at random and evenly.
        seed: Random seed.
    """
    rng = np.random.default_rng(seed)
    chosen = np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False, shuffle=False))
    first, kept = 0, []
    for part in parts:
        low, high = np.searchsorted(chosen, (first, first + len(part)))
        kept.append(part[chosen[low:high] - first])
        first += len(part)
    return np.concatenate(kept), chosen
