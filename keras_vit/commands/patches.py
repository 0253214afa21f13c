"""Commands for the patches of images that a frozen model sees: pca, anomaly."""

import math
import pathlib
import sys
from typing import Annotated

from keras_vit.commands.features import Source
from keras_vit.commands.many import end, files_of, if_bad, needed, shown, tiling_of
from keras_vit.commands.runs import say
from keras_vit.commands.types import MODEL, Count, File, Flag, Folder, Images, Number, Text, about

DRAWN = 1024  # pixels of an image's longer side in a heat map, at most twice as many


def draw_components(
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}; required.")] = None,
    to: Annotated[
        File, about("PNG to write, or to replace; pca.png by default. In tiles a folder; pca by default.")
    ] = None,
    whole: Flag = False,
    tiles: Flag = False,
    tile_size: Count = None,
    overlap: Number = None,
) -> None:
    """Paint the patches of images by the first three principal components of their features.

    Args:
        images: Image files, and folders of them.
        whole: Paint the background too.
        tiles: See images at full size in overlapping tiles; --to is a folder then, for a PNG file for each image.
        tile_size: Pixels of the longer side of a tile in the image; by default the model's size, 1:1.
        overlap: Share of a tile's side that the next one has too, 0 to 0.5; 0.25 by default.
    """
    import numpy as np

    from keras_vit import frozen, plots
    from keras_vit.plots.canvas import as_bytes
    from keras_vit.preparing import preprocessing
    from keras_vit.utils.files import replacing

    tiling = tiling_of(tiles, tile_size, overlap) or False
    to = to or pathlib.Path("pca" if tiling else "pca.png")
    if to.exists() and to.is_dir() != bool(tiling):
        kinds = ("folder", "file") if tiling else ("file", "folder")
        raise ValueError(f"`to` must be a {kinds[0]}. Received: the {kinds[1]} {str(to)!r}")
    files, built = files_of(images), frozen.Embedder(needed(model), tokens=True).model
    colors = frozen.pca_image(built, files, foreground=not whole, bad_images=if_bad(files), tiles=tiling)
    readable = [bool(np.isfinite(each).all()) for each in colors]
    preparation = preprocessing.Preparation(built)
    if tiling:
        drawn = ((i, _small(preparation, files[i]), colors[i][None]) for i, fine in enumerate(readable) if fine)
        _write_figures(drawn, files, to, plots.plot_pca)
    else:
        pixels = preparation([file for file, fine in zip(files, readable) if fine])
        figure = plots.plot_pca(as_bytes(pixels, preparation.range), colors[readable])
        to.parent.mkdir(parents=True, exist_ok=True)
        with replacing(to) as temporary:
            figure.savefig(temporary, format="png")
    print(to)
    end(readable)


def find_anomalies(
    good: Source,
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}; required.")] = None,
    to: Folder = None,
    save: File = None,
    overwrite: Flag = False,
    tiles: Flag = False,
    tile_size: Count = None,
    overlap: Number = None,
) -> None:
    """Score whole images by how far their patches are from those of the normal images in a folder.

    Args:
        images: Image files, and folders of them.
        to: Folder for heat maps, a PNG file for each image; earlier ones are replaced.
        save: File to write the detector to, which ends in .keras.
        overwrite: Replace that file.
        tiles: See images at full size in overlapping tiles, the normal ones too, not shrunk to the model.
        tile_size: Pixels of the longer side of a tile in the image; by default the model's size, 1:1.
        overlap: Share of a tile's side that the next one has too, 0 to 0.5; 0.25 by default.
    """
    from keras_vit import frozen
    from keras_vit.utils.files import check_free
    from keras_vit.utils.folders import in_folder

    files, normal = files_of(images), in_folder(good)
    if save and save.suffix != ".keras":
        raise ValueError(f"--save must end in .keras. Received: {str(save)!r}")
    if save:
        check_free(save, overwrite)
    if to and to.exists() and not to.is_dir():
        raise ValueError(f"--to must be a folder. Received: the file {str(to)!r}")
    detector = frozen.AnomalyDetector(needed(model), tiles=tiling_of(tiles, tile_size, overlap) or False)
    say(f"Remembering {len(normal)} images")
    detector.fit(normal, bad_images=if_bad(normal))
    if save:
        detector.save(save, overwrite)
    scores = detector.score(files, bad_images=if_bad(files))
    readable = [not math.isnan(score) for score in scores.images]
    for file, score, fine in zip(files, scores.images, readable):
        if fine:
            print(f"{shown(file)}: {score:.4f}{'  abnormal' if score > detector.threshold else ''}")
    print(f"threshold: {detector.threshold:.4f}", file=sys.stderr)
    if to:
        _draw_maps(detector, files, scores.maps, to)
    end(readable)


def _draw_maps(detector, files, maps, folder):
    """Writes each image's heat map over the image as it is, all on one scale from 0 to the largest distance."""
    import numpy as np

    from keras_vit import plots
    from keras_vit.preparing.preprocessing import Preparation

    preparation, fine = Preparation(detector.model), [not np.isnan(heat).any() for heat in maps]
    limits = (0, max(heat.max() for heat, finite in zip(maps, fine) if finite))
    drawn = ((i, _small(preparation, files[i]), maps[i][None]) for i, finite in enumerate(fine) if finite)
    _write_figures(drawn, files, folder, lambda pixels, heat: plots.plot_maps(pixels, heat, limits=limits))


def _write_figures(drawn, files, folder, plot):
    """Writes a figure for each of some images into a folder.

    Args:
        drawn: Iterable of the number of an image, its pixels and its map, both with an axis for images.
        files: All images.
        folder: The folder.
        plot: Function from pixels and a map to a figure.
    """
    from keras_vit.utils.files import replacing

    folder.mkdir(parents=True, exist_ok=True)
    for i, pixels, found in drawn:
        figure = plot(pixels, found)
        with replacing(folder / f"{i:04}_{files[i].stem}.png") as temporary:
            figure.savefig(temporary, format="png")


def _small(preparation, file):
    """Returns an image as it is drawn, `(1, height, width, channels)`, 0 to 255: only some of a large one's pixels."""
    from keras_vit.plots.canvas import as_bytes
    from keras_vit.preparing.by_windows import at_own_size, thinned

    picture = at_own_size(preparation, file)
    return as_bytes(thinned(picture, max(max(picture.shape) // DRAWN, 1))[None], preparation.range)
