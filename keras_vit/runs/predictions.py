"""Applies a trained model to image files, or to texts."""

import collections
import os
import pathlib
import sys
from collections.abc import Sequence

import keras

from keras_vit.preparing.by_windows import NotReadError
from keras_vit.runs import output_files, references, tables, unfinished
from keras_vit.runs.passage import Output, outputs
from keras_vit.runs.sampled import draws_images
from keras_vit.runs.trained import Trained, load_run
from keras_vit.runs.translated import translations
from keras_vit.runs.whole_pictures import in_tiles, is_large
from keras_vit.utils import checks, extras, progress
from keras_vit.utils.clip_files import frame_size, is_clip
from keras_vit.utils.files import replacing
from keras_vit.utils.folders import files_in, in_folder, is_image, natural_key


def predict(
    target: os.PathLike | str | keras.Model | Trained,
    images: Sequence[os.PathLike | str],
    top: int = 3,
    to: os.PathLike | str | None = None,
    *,
    texts: str | Sequence[str] | None = None,
    job: str | None = None,
    reference: os.PathLike | str | None = None,
    tiles: bool | dict | None = None,
    resume: bool = False,
    json: os.PathLike | str | None = None,
    csv: os.PathLike | str | None = None,
) -> list[list[tuple[str, float]]]:
    """Applies a trained model to image files, in batches.

    A model, or a `.keras` file, whose published preprocessing keeps the aspect ratio, such as Depth Anything, sees each
    image at its own; see `keras_vit.estimate_depth`. From 512 images on any other model runs as a graph, whose numbers
    differ by rounding. The table of answers is written row by row, and memory does not grow with the images but for the
    list that is returned.

    Args:
        target: As in `keras_vit.load_run`, such as the directory of a run, a `.keras` file or a Keras model.
        images: Paths of images, and of folders, which are searched with all their subfolders; or a single path. Of
            `Translate`, the texts.
        top: How many answers to return for an image, at most; of several labels all that hold are returned.
        to: Folder for files, for tasks that make them: `STEM.png` of each image. Of `Segment`, masks of class indices
            at the image's own size; of `Restore`, the restored image, with the alpha channel, the color profile and
            the EXIF data of its file; of `Depth` 16-bit PNGs, whose text `depth` says what a value means, and in colors
            `STEM.color.png`; of `Detect` `STEM.txt`, YOLO's labels: a row for each object with its class's
            index, its center x, center y, width and height as shares of the upright image, and its score; of tasks
            that find segments, COCO's panoptic PNGs: red + 256 green + 65536 blue is a pixel's `"id"` in the tables, 0
            for none.
        texts: For tasks that take a text with each image, such as `Contrast`: one for all images, or a list.
        job: Of `Restore` with several jobs: which one, such as `"denoise25"`; see `keras_vit.load_run`.
        reference: Of `Restore` with references: a sharp picture of the same thing for all images, at the size of the
            results; or a folder that has one of the name of each image, `STEM.png` or with another ending.
        tiles: Of `Detect` and `Segment`, whether pictures larger than the model are predicted at full size, in
            overlapping tiles; a dictionary has options, as in `Segment`. `None` for what the recipe says.
        resume: Whether to continue an interrupted call of the same model and options, which left `.unfinished.json` in
            `to`: images of which all files are there are left out. Files are complete or not there. Their answers are
            `None`, so there can be no table.
        json: JSON file for all answers, a list of dictionaries. For tasks that find objects, COCO's results with the
            image's file name as `"image_id"` and the class's name as `"category"`; `"bbox"` is x, y, width, height in
            pixels of the upright image. Segments also have an `"id"`, an `"area"` in pixels, and a `"segmentation"`,
            COCO's run lengths. For all others `"image_id"`, the path as it was given, `"name"` and `"value"`; of
            several labels also the class's `"threshold"` and whether it `"holds"`.
        csv: CSV file for the same rows, in UTF-8, without masks; the columns of a box are `x`, `y`, `width` and
            `height`.

    Returns:
        A list of `(name, value)` per image, most likely first, such as classes and their probabilities; of several
        labels first those that reach their thresholds. `None` for an image that `resume` left out.

    Raises:
        TypeError: For arrays in place of paths.
        ValueError: As `load_run`; for a file that cannot be read, or a folder without images; with `to`, for a task
            without files; for two images with one name where names tell them apart; for an image whose outputs are not
            finite. The tables are not written then; files in `to` stay of the images before that one.
        FileNotFoundError: As `load_run`, and for a file that does not exist.
        FileExistsError: If a file to write exists.
        ImportError: For a table of segments, if pycocotools is not installed.
    """
    several = isinstance(images, (list, tuple))
    paths = all(isinstance(image, (str, os.PathLike)) for image in (images if several else [images]))
    if not paths and not isinstance(images, (set, dict)):
        raise TypeError(
            "`images` must be paths of files and folders: of arrays, call model.predict(keras_vit.preprocess(model, "
            f"images)). Received: {checks.shown(images)}"
        )
    images = [images] if isinstance(images, (str, os.PathLike)) else checks.sequence("images", images)
    trained, answers = load_run(target, job=job), []
    files = given(trained, images)
    options = {"texts": texts, "reference": reference, "tiles": tiles, "resume": resume, "json": json, "csv": csv}
    each = predictions(trained, files, top, to, **options)
    for _, answer, error in followed(each, len(files)):
        if error:
            raise error
        answers.append(answer)
    return answers


def predictions(
    target, files, top=3, to=None, *, texts=None, reference=None, tiles=None, resume=False, json=None, csv=None
):
    """Yields the predictions of `predict` image by image, and goes past unreadable files.

    Args:
        target: As in `load_run`.
        files: Paths of images.
        top: As in `predict`.
        to: As in `predict`.
        texts: As in `predict`.
        reference: As in `predict`.
        tiles: As in `predict`.
        resume: As in `predict`.
        json: As in `predict`; written after the last image, or at Ctrl-C with those before.
        csv: As in `predict`; written so, too.

    Yields:
        The path, its list of `(name, value)` and `None`; or the path, `None` and the reading error, if there was one.

    Raises:
        ValueError: As `predict`, but for unreadable files.
    """
    checks.positive(top=top)
    checks.switch(resume=resume)
    trained = in_tiles(load_run(target), tiles)
    task, kind = trained.task, output_files.KINDS.get(trained.task.gives, output_files.USUAL)
    if draws_images(trained):
        raise ValueError(
            "A model that draws images takes none: keras_vit.sample(model, labels), or predict with --class and --to. "
            f"Received: {len(files)} images for {type(task).__name__}"
        )
    if task.of_texts and to is not None:
        raise ValueError(f"`to` is for tasks that make files. Received: to={str(to)!r} with {type(task).__name__}")
    if not task.of_texts:
        files = [file if isinstance(file, pathlib.Path) else pathlib.Path(file) for file in files]
    ids = trained.ids_of(texts, len(files)) | references.of_files(trained, reference, files)
    paths = {name: checks.path(name, path) for name, path in (("json", json), ("csv", csv)) if path is not None}
    for name, path in paths.items():
        _check_table(name, path, files, kind)
    if resume and (to is None or paths):
        raise ValueError(
            "`resume` leaves out images whose files are in `to`: it needs `to`, and no table, which would lack them. "
            f"Received: to={to and str(to)!r}, {', '.join(paths) or 'no table'}"
        )
    if task.of_texts:
        yield from translations(trained, files, top, paths)
        return
    to, known = (None, None) if to is None else (checks.path("to", to), unfinished.facts(trained, texts, reference))
    place, done = (None, ()) if to is None else _place(task, kind, files, to, known, resume)
    left = [i for i, path in enumerate(files) if path not in done]
    ids = {name: rows.take(left, 0) for name, rows in ids.items()} if done else ids
    keeps = (kind.keeps if task.clips is None else kind.keeps and frame_size) if place or paths else None
    finish = task.result if kind.pixels and task.whole else None
    with tables.written(paths, kind.columns) as add:
        made = outputs(trained, [files[i] for i in left], ids, keeps, finish)
        for path, output, source, error in _with_done(files, done, made):
            if output is None:
                yield path, None, error
                continue
            if keeps and task.gives == "boxes" and not task.whole:
                output = output_files.in_photo(output, source, trained.about.rule)
            try:
                for file, save in place(path).items() if place else ():
                    with replacing(file) as temporary:
                        save(task, output, source, temporary)
                answer = task.listed(output, top)
            except NotReadError as error:  # of a large picture, which is read as its mask is written
                yield path, None, error
                continue
            if paths:
                add(kind.entries(task, output, path, answer, source))
            yield path, answer, None
    if place:
        unfinished.done(to)


def _with_done(files, done, made):
    """Yields the outputs of files in order, an empty one for each of those that are done."""
    for path in files:
        yield Output(path, None, None, None) if path in done else next(made)


def followed(answers, total):
    """Yields predictions, and shows on standard error how many were made, unless the same stream has the answers."""
    if sys.stdout is sys.stderr or _is_one(sys.stdout, sys.stderr):
        return answers
    each = ([one] for one in answers)
    return (one for (one,) in progress.counted(each, total, "predicting", after=3.0))


def _is_one(*streams):
    """Returns whether two streams end in one file, pipe or terminal."""
    try:
        return os.path.sameopenfile(*(stream.fileno() for stream in streams))
    except (OSError, ValueError, AttributeError):  # streams of a notebook have no file
        return False


def _check_table(name, path, files, kind):
    """Raises ValueError or FileExistsError unless the answers of files can be written to a path, as JSON or CSV."""
    if kind.needs:
        extras.need("A table of masks", *kind.needs)
    if kind.by_name:
        _check_different([file.name for file in files], "for one file of objects")
    tables.check({name: path})


def _check_different(names, why):
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Images must have different names, {why}. Received: two of {twice[0]!r}")


def _place(task, kind, files, folder, known, resume):
    """Returns the function from a file to the paths of what is made of it, each with the function that writes it.

    And the set of the files of which all is there, with `resume`. The folder is made if necessary, and notes `known`,
    see `unfinished`. Other arguments are as in `predict`.
    """
    if kind.save is None:
        name = type(task).__name__
        raise ValueError(
            "`to` is for tasks that make files, such as Segment, Detect, Depth and Restore. "
            f"Received: to={str(folder)!r} with {name}"
        )
    saves = {kind.ending: kind.save, **kind.beside}
    large = {path for path in files if kind.large and is_large(task, path)}

    def place(path):
        every = {".tif": kind.large} if path in large else saves
        return {folder / f"{path.stem}{ending}": save for ending, save in every.items()}

    targets = [target for path in files for target in place(path)]
    _check_different([target.name for target in targets], "for files in one folder")
    if tables.taken("to", folder) and not folder.is_dir():
        raise ValueError(f"`to` must be a folder. Received: to={str(folder)!r}")
    existing = {target for target in targets if tables.taken("to", target)}
    if resume and existing:
        unfinished.check(folder, known)
    blocked = [path for path in files if not {*place(path)}.isdisjoint(existing)]
    if existing and not resume:
        raise FileExistsError(
            f"{str(min(existing))!r} exists. Choose another folder, or continue what an interrupted call left: resume. "
            f"Received: to={str(folder)!r} with files of {len(blocked)} of {len(files)} images"
        )
    folder.mkdir(parents=True, exist_ok=True)
    unfinished.note(folder, known)
    return place, {path for path in files if {*place(path)} <= existing}


def given(trained, images):
    """Returns what a trained model is applied to: the files of paths, as `image_files`, or texts as they are."""
    return [*images] if trained.task.of_texts else image_files(images)


def image_files(paths):
    """Returns a list of files: those among the paths, and the images inside the folders among them.

    Raises:
        FileNotFoundError: For a path that does not exist.
        ValueError: For a folder without images, or no path.
    """
    files = []
    for path in (checks.path("images", path) for path in paths):
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(path)!r}.")
        files += _inside(path) if path.is_dir() else [path]
    if not files:
        raise ValueError("At least one image file is needed. Received: none")
    return files


def _inside(folder):
    """Returns the images in a folder, as people count them; where there are none, the clips."""
    clips = [path for path in files_in(folder) if is_clip(path)]
    paths = in_folder(folder) if any(map(is_image, clips)) or not clips else map(pathlib.Path, clips)
    return sorted(paths, key=natural_key)
