"""A task of one's own, as a recipe file defines it."""

import gc
import json
import pathlib

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import config
from keras_vit.data import pipeline, sources
from keras_vit.models.outputs import distinct
from keras_vit.tasks import base
from tests.marks import slow
from tests.small import small
from tests.tasks.harness import run_task_test

TOY = """
from dataclasses import dataclass
import numpy as np, tensorflow as tf, keras_vit
from keras_vit import Data, Optim, Recipe, Task

class Error:
    def __init__(self): self.errors = []
    def add(self, examples, outputs):
        self.errors.append(abs(outputs[:, 0] - examples["images"].mean((1, 2, 3)) / 255))
        return -self.errors[-1]
    def result(self): return {"mean_error": float(np.concatenate(self.errors).mean())}
    def figures(self): return {}

@dataclass(frozen=True, repr=False)
class Brightness(Task):
    power: float = 1.0
    def model(self, **arguments): return self.vit(**{**arguments, "num_classes": 1})
    def compiled(self, source): return {"loss": "mse"}
    def batch(self, examples, augment, seed):
        return examples["images"], tf.reduce_mean(examples["images"], axis=(1, 2, 3))[:, None] / 255
    def tally(self, keep=False): return Error()
    def answer(self, output): return {"brightness": float(output[0])}

recipe = Recipe(
    name="toy", task=Brightness(classes=("dark", "light")),  # not the ten of the data
    model=dict(variant="mu/4", image_size=8, channels=1, depth=2, dropout=0.1),
    data=Data(source="digits", batch_size=16, limit=32), optim=Optim(epochs=2, ema=0.9),
)
"""


@slow
def test_a_task_in_a_recipe_file_does_everything(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text(TOY)
    recipe = keras_vit.load_recipe(tmp_path / "toy.py", {"task.power": 2.0})
    assert recipe.task.power == 2.0 and "task.power" in config.names(recipe)
    run = run_task_test(recipe, tmp_path, monkeypatch, whole=True)
    assert keras_vit.load_run(run).recipe.task == recipe.task


def test_an_unknown_task_is_named(tmp_path):
    values = {"name": "x", "model": {}, "task": {"kind": "Nothing"}}
    with pytest.raises(
        base.UnknownTaskError, match="The task 'Nothing' is defined in a recipe file of your own. Pass that"
    ):
        config.from_dict(values)
    (tmp_path / "recipe.json").write_text(json.dumps(values))
    (tmp_path / "model.keras").write_text("")
    with pytest.raises(base.UnknownTaskError, match="The task 'Nothing'"):
        keras_vit.load_run(tmp_path)
    assert {"Classify", "Pretrain", "Segment"} <= set(base.TASKS)
    with pytest.raises(ValueError, match="a name of its own. Received: 'Classify', a task of keras_vit"):
        type("Classify", (base.Task,), {})


@slow
def test_a_recipe_file_stands_for_its_run(tmp_path, monkeypatch, eagerly):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text(TOY)
    recipe = keras_vit.load_recipe("toy.py")
    keras_vit.fit(recipe, verbose=0)
    base.TASKS.pop("Brightness")  # as in a new process
    del recipe
    gc.collect()
    with pytest.raises(base.UnknownTaskError, match="The task 'Brightness'"):
        keras_vit.evaluate("runs/toy")
    assert "mean_error" in keras_vit.evaluate("toy.py")["runs/toy/model.keras"]
    assert "mean_error" in keras_vit.evaluate("runs/toy")["runs/toy/model.keras"]  # the class stays


class Turned(base.Task):
    """Counts how often the pipeline made the same targets for training and for scoring."""

    def prepare(self, examples, seed):
        return {
            **examples,
            "turns": tf.random.stateless_uniform(tf.shape(examples["images"])[:1], seed, 0, 4, tf.int32),
        }

    def batch(self, examples, augment, seed):
        return examples["images"], examples["turns"]


def test_targets_of_the_task_s_own_are_scored_too():
    recipe = config.Recipe(name="x", model={}, task=Turned(), data=config.Data(batch_size=16, limit=48))
    source = sources.load(recipe.data, "all[80%:]", ())
    trained = [y for _, y in pipeline.evaluation_batches(source, recipe, (8, 8, 1)).as_numpy_iterator()]
    scored = [examples["turns"] for examples in pipeline.evaluation_arrays(source, recipe, (8, 8, 1))]
    np.testing.assert_array_equal(trained, scored)
    assert (scored[0] != scored[1]).any() and set(np.concatenate(scored)) == {0, 1, 2, 3}


def test_a_task_meets_its_data_once(tmp_path, monkeypatch, eagerly):
    met = []
    on = config.Classify.on

    def counted(task, source, arguments=None):
        met.append(len(source))
        return on(task, source, arguments)

    monkeypatch.setattr(config.Classify, "on", counted)
    keras_vit.datasets(small())
    keras_vit.fit(small(), tmp_path, verbose=0)
    assert met == [8, 8] * 2  # both splits
    keras_vit.evaluate(tmp_path)
    assert len(met) == 5


def test_what_a_task_does_not_define_is_named():
    plain = base.Task()
    for call, name in ((lambda: plain.model(), "model"), (lambda: plain.tally(), "tally")):
        with pytest.raises(NotImplementedError, match=f"Task must define `{name}`"):
            call()
    with pytest.raises(ValueError, match="Task takes no teacher"):
        plain.teacher_for(None, keras_vit.vit("mu/4", image_size=8, num_classes=2))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_is_the_image_by_default(channels):
    image = np.random.default_rng(0).uniform(-1, 256, (5, 6, channels))
    drawn = base.Task().picture(image, None)
    assert drawn.dtype == "uint8" and drawn.shape == (5, 6, 3)
    plain = base.Task(classes=("a", "b"))
    assert [*plain.answer(np.array([0.25, 0.75])).items()] == [("b", 0.75), ("a", 0.25)]
    assert plain.caption(np.array([0.25, 0.75]), {}) == "b 75.0%, a 25.0%"
    assert plain.caption(np.array([-0.5, 57.25]), {}) == "b 57.25, a -0.5"
    assert pathlib.Path(base.__file__).name == "base.py"


def test_classes_of_one_name_have_their_numbers():
    assert distinct(("a", "b")) == ("a", "b") and distinct(()) == ()
    assert distinct(("crane", "owl", "crane")) == ("crane (0)", "owl", "crane (2)")
    assert len(set(distinct(("a", "a", "a (0)")))) == 3
    found = base.Task(classes=("crane", "owl", "crane")).answer(np.array([0.5, 0.2, 0.3]))
    assert found == {"crane (0)": 0.5, "crane (2)": 0.3, "owl": 0.2}
