"""Trained models: from a run, the weights that ship with a recipe, a `.keras` file, or a model in memory."""

import dataclasses
import functools
import os
import pathlib
import re
from typing import Any

import keras

from keras_vit import config
from keras_vit.checkpoints.files import repository
from keras_vit.config import cookbook
from keras_vit.models.captioner import is_translator
from keras_vit.models.inputs import image_shape
from keras_vit.models.outputs import labels_beside, logits_by, num_classes
from keras_vit.models.unknown import ENERGY
from keras_vit.runs import unknown
from keras_vit.runs.alone import check_images, names_of, task_of
from keras_vit.tasks.clip_task import averaged_views
from keras_vit.tasks.in_tiles import at_full_size, with_tiles
from keras_vit.training import rundir
from keras_vit.traits import Traits
from keras_vit.utils import checks, downloads
from keras_vit.utils.feeding import run


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with its recipe and class names, and where its files and data are."""

    model: keras.Model
    recipe: config.Recipe | None  # `None` for a model, and for a file outside a run directory
    class_names: tuple[str, ...]
    file: str  # the model's file, as `evaluate` lists it; the name of a model in memory
    home: pathlib.Path  # folder for its exports and pictures
    run: pathlib.Path | None = None  # directory of its run
    on_arrays: bool = False  # whether the run was trained on arrays
    elsewhere: bool = False  # whether its recipe names other data than those of the run
    in_memory: bool = False  # whether the caller passed the model itself, of which no file is known
    local: str | None = None  # the model's file on this machine, where `file` is an address
    tiles: Any = None  # in place of the task's option; `None` for that

    @functools.cached_property
    def about(self):
        """The `Traits` of the model."""
        return Traits(self.model)

    @functools.cached_property
    def bound(self):
        """The recipe, with the classes in its task, and what the model's file says of it.

        Of a file outside a run directory it is a stand-in, to classify arrays of the model's size.
        """
        recipe = self.recipe
        if recipe is None:
            name, task = pathlib.Path(self.file).stem, task_of(self.about)
            recipe = config.Recipe(name=name, task=task, model={}, data=config.Data(source=""))
        task = dataclasses.replace(recipe.task, classes=tuple(self.class_names))
        return dataclasses.replace(recipe, task=with_tiles(task, self.tiles).of_model(self.model))

    @property
    def task(self):
        """The task of `bound`."""
        return self.bound.task

    @property
    def size(self):
        """`(height, width, channels)` of the images that the model takes."""
        return image_shape(self.model)

    def viewer(self, finish=None, eager=True):
        """Returns the function from inputs to what the task answers and draws: its outputs, or its learner's.

        Where a task has several views of a clip, it takes one view, or all with an axis of them, which it averages.

        Args:
            finish: Of a `whole` task: what to make of each few rows of the outputs; see `tiled`.
            eager: As in `forward`.
        """
        path = self.run and self.home == self.run and self.run / rundir.LEARNER  # the last epoch's
        own = self.task.viewer(rundir.read_model(path)) if path and path.exists() else None
        own = own or self._seeing(eager)
        if averaged_views(self.task) > 1:
            from keras_vit.data.views import averaged

            return averaged(own, self.task, self.bound.data.batch_size)
        if not self.task.whole:
            return own
        return at_full_size(self.task, own, self.size, finish)

    def _seeing(self, eager):
        """Returns `answering`, with a column more where a rule for unknown images needs it."""
        rule = getattr(self.task, "unknown", None)
        return self.answering(eager) if rule is None or rule["rule"] == ENERGY else unknown.viewing(self, rule)

    def answering(self, eager=False):
        """Returns the function from inputs to what is scored and answered; arguments as in `forward`."""
        own = self.task.answering(self.model)
        return forward(self.model, eager) if own is self.model else own

    def ids_of(self, texts, count):
        """Returns what the model takes besides images: a dictionary of the ids of texts, or an empty one.

        Args:
            texts: A text for all images, or a list of one for each; `None` for a task without texts.
            count: Number of images.

        Raises:
            ValueError: For texts that the task does not take, that are missing, or too long.
        """
        takes, name = "texts" in self.task.inputs, type(self.task).__name__
        self.check_one_job()
        if takes != (texts is not None):
            rule = "takes a text with each image: pass `texts`" if takes else "takes images alone"
            raise ValueError(f"{name} {rule}. Received: texts={checks.shown(texts):.60}")
        if not takes:
            return {}
        texts = [texts] * count if isinstance(texts, str) else checks.sequence("texts", texts)
        if len(texts) != count or not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError(
                f"`texts` must be a text for all images, or one for each of {count}. Received: {len(texts)} of them"
                if len(texts) != count
                else f"Each text must have a word. Received: {checks.shown(texts):.60}"
            )
        ids = self.task.ids_of("raise")(texts)
        self.task.warn_of_unknown(ids, texts)
        return {"texts": ids}

    def check_one_job(self):
        """Raises ValueError for a model of several jobs, which does not know what to do with an image alone."""
        if jobs := getattr(self.task, "jobs", ()):
            raise ValueError(f"`job` must be one of {', '.join(map(repr, jobs))} for image files. Received: none")

    def doing(self, job):
        """Returns it for one of several jobs, with the model of that job, which takes images alone; `None` for all.

        Raises:
            ValueError: For a name that is none of its jobs.
        """
        if job is None:
            return self
        jobs = getattr(self.task, "jobs", ())
        if not jobs:
            raise ValueError(
                f"{type(self.task).__name__} does a single job: leave `job` out. Received: job={checks.shown(job)}"
            )
        checks.one_of("job", job, jobs)
        from keras_vit.tasks.restore.jobs import single

        recipe = dataclasses.replace(self.recipe, task=self.recipe.task.single(job))
        return dataclasses.replace(self, model=single(self.model, jobs, job), recipe=recipe, home=self.home / job)

    @property
    def alone(self):
        """Whether it is a model in memory, or a file outside a run directory."""
        return self.recipe is None

    @property
    def shipped(self):
        """Whether its weights ship with the package."""
        return self.run is None and not self.alone


def load_run(
    target: os.PathLike | str | keras.Model | Trained, file: str = rundir.MODEL, *, job: str | None = None
) -> Trained:
    """Loads a trained model from a run directory, a `.keras` file, or the weights that ship with a recipe.

    A `.keras` file in a run directory has the run's recipe and class names. Any other file, and a model, has the class
    names in its metadata, or `"0"`, `"1"` and so on.

    Args:
        target: Directory of a run, path of a `.keras` file, or name of a recipe with trained weights. Or a repository
            of the Hugging Face hub, `hf://owner/name` or `hf://owner/name@revision`, that `push_to_hub` wrote, or
            Keras's `model.save`. Or your own recipe file, for its run in `runs/NAME`: the way to a run whose task the
            file defines. Or a Keras model of images and classes. A `Trained` is returned as it is.
        file: `"model.keras"` (the last epoch, or the best with `optim.patience`) or `"best.keras"`, in a run's
            directory.
        job: Of `Restore` with several jobs: the name of one, such as `"denoise25"`. The model is then that of this job
            alone, which takes images; its exports and pictures go to a folder of this name.

    Returns:
        A `Trained`, with attributes `model`, `recipe` (a `Recipe`, or `None` for a model, and for a file outside a run
        directory) and `class_names`.

    Raises:
        ValueError: For any other `target`, a file that is damaged or is not an image classifier, or another `job`.
        FileNotFoundError: If the directory or file does not exist, or the run is not finished.
    """
    checks.one_of("file", file, (rundir.MODEL, rundir.BEST))
    return _loaded(target, file).doing(job)


def _loaded(target, file):
    if isinstance(target, (Trained, keras.Model)):
        if file != rundir.MODEL:
            raise ValueError(f"file={file!r} is for the directory of a run. Received: a model that is loaded")
        return target if isinstance(target, Trained) else _in_memory(target)
    if downloads.is_repository(target):
        return _of_repository(target, file)
    path = checks.path("target", target)
    if rundir.is_run(path):
        return _of_run(path, file)
    if file != rundir.MODEL:
        raise ValueError(f"file={file!r} is for the directory of a run. Received: {str(target)!r}")
    if path.suffix == ".keras" and not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(target)!r}.")
        return _of_run(path.parent, path.name) if rundir.is_run(path.parent) else _alone(path)
    if path.is_dir() and (published := repository.trained_at(path)):
        return _alone(published)
    if path.suffix != ".py" and str(target) not in cookbook.list_recipes():
        _refuse(path, str(target), pathlib.Path("runs", path.name))
    recipe = cookbook.load_recipe(target)
    own = pathlib.Path("runs", recipe.name)  # where `fit` writes by default
    if path.suffix == ".py" and rundir.is_run(own):
        return _of_run(own, file)
    if recipe.weights is None and rundir.is_run(own):
        raise ValueError(
            f"The recipe {recipe.name!r} has no trained weights with the package. Did you mean {str(own)!r}?"
        )
    labels = labels_beside(cookbook.weights_path(recipe)) or ()
    model, home = cookbook.from_recipe(recipe, pretrained=True), pathlib.Path("exports", recipe.name)
    return Trained(model, recipe, labels, recipe.weights.file, home)


def _of_repository(source, file):
    """Returns the model that `push_to_hub` wrote, or Keras; what is made of it goes to `exports/NAME`."""
    if file != rundir.MODEL:
        raise ValueError(f"file={file!r} is for the directory of a run. Received: {source!r}")
    path = repository.trained_in(source)
    if path is None:
        raise ValueError(
            f"A repository must have a model of `push_to_hub`, or of Keras's model.save('hf://...'). Received: "
            f"{source!r}. Encoders of other libraries are loaded by `keras_vit.from_pretrained`"
        )
    trained = _of_run(path, file) if path.is_dir() else _alone(path)
    name = re.sub(r"[^\w.-]", "_", source.partition("@")[0].rpartition("/")[2])
    return dataclasses.replace(trained, file=source, local=trained.file, home=pathlib.Path("exports", name))


def _refuse(path, target, own):
    """Raises an error if a path exists but is no model, or does not exist."""
    if path.is_dir():
        raise ValueError(f"{target!r} is not a run directory: it has no {rundir.RECIPE}.")
    if path.exists():
        raise ValueError(
            f"A trained model must be a run directory, a .keras file or a recipe's name. Received: {target!r}"
        )
    if rundir.is_run(own):
        raise FileNotFoundError(f"There is no run {target!r}. Did you mean {str(own)!r}?")
    if path.suffix or path.name != target:
        runs = sorted(str(file.parent) for file in path.parent.glob(f"*/{rundir.RECIPE}"))
        raise FileNotFoundError(f"There is no run {target!r}.{f' {checks.near(target, runs)}' if runs else ''}")


def _of_run(folder, file):
    model, recipe, class_names, data = rundir.load(folder, file)
    if not is_translator(model):
        check_images(model, folder / file)
    home = folder if file == rundir.MODEL else folder / pathlib.Path(file).stem
    trained = Trained(model, recipe, class_names, str(folder / file), home, folder, bool(data.get("arrays")))
    if class_names and not trained.task.fits(model):
        raise ValueError(
            f"{str(folder / file)!r} must have the classes of its run, {len(class_names)} in {rundir.LABELS}. "
            f"Received: a model of {num_classes(model)}"
        )
    return trained


def _alone(path):
    model = rundir.read_model(path)
    names = names_of(Traits(model), path, lambda: labels_beside(path))
    return Trained(model, None, names, str(path), path.with_suffix(""))


def _in_memory(model):
    names, home = names_of(Traits(model), model.name), pathlib.Path("exports", model.name)
    return Trained(model, None, names, model.name, home, in_memory=True)


def forward(model, eager=False):
    """Returns the function from what a model takes to its outputs, as arrays; probabilities become logits.

    Args:
        model: A Keras model.
        eager: Whether to run it without tracing a graph, which is not worth it for a few images.
    """
    compute = functools.partial(model, training=False) if eager else functools.partial(run, model)
    as_logits = logits_by(model)
    return lambda images: as_logits(keras.ops.convert_to_numpy(compute(images)))
