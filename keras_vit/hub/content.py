"""What of a trained model is published."""

import os
import pathlib
from typing import NamedTuple

import keras
import numpy as np

from keras_vit import config
from keras_vit.checkpoints.files.settings import read_json
from keras_vit.export.sequence import IN_FOLDER
from keras_vit.models.inputs import image_shape
from keras_vit.models.metadata import metadata
from keras_vit.runs import unknown
from keras_vit.runs.trained import Trained, load_run
from keras_vit.training import cross_validation, rundir
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.warned import warn
from keras_vit.utils.weights_digest import WEIGHTS, weights_digest

MODELS = ("model*.tflite", "model*.json", "model.onnx", "model.onnx.data", "model.xml", "model.bin")
EXPORTS = (rundir.SAVED_MODEL, *MODELS)


class Content(NamedTuple):
    """What of a trained model is published, and what its card says."""

    model: keras.Model
    recipe: config.Recipe | None
    data: dict  # what identifies the data of its run
    names: tuple[str, ...]  # of the classes
    scores: dict  # of the validation split, by name
    exports: tuple[pathlib.Path, ...]
    history: pathlib.Path | None  # folder of its history
    task: str  # the task's name; empty of an encoder
    gives: str | None  # kind of its output
    clips: bool
    texts: bool  # whether a text is given with each image, or in place of one
    whole: bool = False  # whether it takes images of any size, in tiles
    of_texts: bool = False  # whether it takes no images
    references: bool = False
    jobs: tuple[str, ...] = ()
    vectors: np.ndarray | None = None  # of training images, by which it tells unknown ones

    @property
    def shape(self):
        return image_shape(self.model)

    @property
    def range(self):
        return Traits(self.model).range

    @property
    def weights(self):
        return self.model.count_params()


def content_of(target):
    """Returns the `Content` of a run, a file, a recipe's weights or a model.

    Args:
        target: As in `load_run`; or any model of images, such as an encoder.

    Raises:
        ValueError, FileNotFoundError: As `load_run`.
    """
    if isinstance(target, keras.Model):
        return _of_model(target)
    trained = load_run(target) if isinstance(target, (str, os.PathLike, Trained)) else None
    if trained is None:
        raise TypeError(f"`target` must be a model, a run or its path. Received: target={checks.shown(target)}")
    task = trained.task
    return Content(
        model=trained.model,
        recipe=trained.recipe,
        data=rundir.read_json(trained.run / rundir.DATA) if trained.run else {},
        names=tuple(trained.class_names),
        scores=_scores(trained),
        exports=_exports(trained),
        history=trained.run if trained.run and (trained.run / rundir.HISTORY).is_file() else None,
        task=type(task).__name__,
        gives=None if Traits(trained.model).features else task.gives,
        clips=task.clips is not None,
        texts="texts" in task.inputs or task.of_texts or (task.gives == "velocity" and bool(task.text)),
        whole=bool(task.whole),
        of_texts=task.of_texts,
        references="references" in task.inputs,
        jobs=tuple(getattr(task, "jobs", ())),
        vectors=None if trained.in_memory else unknown.vectors_of(trained),
    )


def _of_model(model):
    about = Traits(model)
    if about.range is None and not about.inputs.keys() & {"images", "clips"}:
        raise ValueError(
            f"`target` must be a model of images, or a run. Received: target={model.name!r}, which takes no images"
        )
    encodes = about.features is not None or about.gives == "embeddings"
    return Content(
        model=model,
        recipe=None,
        data={},
        names=tuple(metadata(model).get("labels") or ()),
        scores={},
        exports=(),
        history=None,
        task="",
        gives=None if encodes else about.gives,
        clips=len(image_shape(model)) > 3,
        texts=len(model.inputs) > 1,
    )


def _exports(trained):
    """Returns the exported files and folders of a trained model, without those that were made of other weights."""
    if trained.in_memory:
        return ()
    found = sorted({path for name in EXPORTS for path in trained.home.glob(name)})
    own = weights_digest(trained.model) if found else ""
    other = [path for path in found if _of_other_weights(path, trained, own)]
    if other:
        warn(
            f"{', '.join(path.name for path in other)} of {str(trained.home)!r} {'have' if len(other) > 1 else 'has'} "
            f"other weights than {pathlib.Path(trained.file).name}, and will not be published: export again."
        )
    return tuple(path for path in found if path not in other)


def _of_other_weights(path, trained, own):
    """Returns whether an export was made of other weights, by what is written beside it; else by the files' times."""
    stated = read_json(_beside(path)).get(WEIGHTS)
    if stated and not getattr(trained.task, "jobs", ()):
        return stated != own
    weights = pathlib.Path(trained.file)
    return bool(trained.run) and weights.is_file() and path.lstat().st_mtime < weights.stat().st_mtime


def _beside(path):
    """Returns the file with the facts of an export, of which a path is a part."""
    if path.is_dir():
        return path / IN_FOLDER
    main = {".data": path.with_suffix(""), ".bin": path.with_suffix(".xml")}.get(path.suffix, path)
    return path if path.suffix == ".json" else main.with_name(f"{main.name}.json")


def _scores(trained):
    """Returns the scores of the validation split: of a run's history, or what its recipe says was reached."""
    if trained.run and (trained.run / rundir.HISTORY).is_file():
        found = cross_validation.scores(trained.run, trained.recipe)
        return {name.removeprefix("val_"): float(value) for name, value in found.items()}
    return {}
