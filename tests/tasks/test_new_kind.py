"""An output of a new kind is a row of `models.kinds.KINDS` and one of what is written of it; nothing else changes."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.config import Data, Optim, Recipe, Task  # noqa: E402
from keras_vit.models.kinds import KINDS, Kind, kind_of  # noqa: E402
from keras_vit.runs import output_files, results  # noqa: E402
from keras_vit.runs.passage import read  # noqa: E402
from tests.marks import slow  # noqa: E402
from tests.tasks.test_base import TOY  # noqa: E402

HALVES = Kind(  # of the image: how bright its upper and its lower half is
    names=("upper", "lower"),
    named=lambda output, size, shares: {"upper": output[:, :1], "lower": output[:, 1:]},
    packed=lambda outputs, size: np.concatenate([outputs["upper"], outputs["lower"]], axis=-1),
    bounded="Brightness has no probabilities.",
    same=lambda outputs: np.rint(10 * outputs),
    counted="tenths",
)
HALVES_WRITTEN = output_files.Written(
    save=lambda task, output, source, path: path.write_text(" ".join(f"{value:.6f}" for value in output)),
    ending=".txt",
)


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.setitem(KINDS, "halves", HALVES)
    monkeypatch.setitem(output_files.KINDS, "halves", HALVES_WRITTEN)
    defined = {}
    exec(TOY[: TOY.index("@dataclass")], defined)

    @dataclass(frozen=True, repr=False)
    class Halves(Task):
        gives = "halves"

        def model(self, **arguments):
            return keras_vit.vit(**{**arguments, "num_classes": 2})

        def compiled(self, source):
            return {"loss": "mse"}

        def batch(self, examples, augment, seed):
            halves = tf.reshape(examples["images"], (-1, 2, 4 * 8))
            return examples["images"], tf.reduce_mean(halves, -1) / 255

        def tally(self, keep=False):
            return defined["Error"]()

    return Recipe(
        name="halves",
        task=Halves(),
        model=dict(variant="mu/4", image_size=8, channels=1, depth=1),
        data=Data(source="digits", batch_size=16, limit=32),
        optim=Optim(epochs=1, learning_rate=0.01, xla=False),
    )


@slow
def test_it_is_trained_predicted_to_a_file_exported_and_compared(recipe, tmp_path, pictures, eagerly):
    model, _ = keras_vit.fit(recipe, tmp_path / "run", verbose=0)
    trained = keras_vit.load_run(tmp_path / "run")
    assert kind_of(model) is kind_of(trained.model) is HALVES
    keras_vit.predict(trained, pictures[:2], to=tmp_path / "halves", csv=tmp_path / "a.csv")
    outputs = trained.viewer()(read(trained, pictures[:2]))
    for path, output in zip(pictures, outputs):
        written = (tmp_path / "halves" / f"{path.stem}.txt").read_text()
        np.testing.assert_allclose([float(value) for value in written.split()], output, atol=1e-5)
    assert (tmp_path / "a.csv").read_text().startswith("image_id,name,value\n")
    tf.config.run_functions_eagerly(False)  # an export traces a graph
    for report in results.export(trained):
        assert report.same == "tenths" and report.agreement > 0.8 and report.max_abs_diff < 1e-4
    said = json.loads((tmp_path / "run" / "model.tflite.json").read_text())
    assert said["report"]["same"] == "tenths"
    assert len(keras_vit.evaluate(trained)) == 3
    with pytest.raises(ValueError, match="Brightness has no probabilities. Received: probabilities=True"):
        keras_vit.export_saved_model(model, tmp_path / "other", probabilities=True)


@pytest.mark.parametrize(
    "method, said",
    [
        ("result", "A task with `result` must say what it `gives`. Received: 'Unsaid' without"),
        ("mask", "`mask` of a task is `result\\(output, size\\)`. Received: 'Unsaid' with it"),
        ("objects", "`objects` of a task is `result\\(output, size\\)`. Received: 'Unsaid' with it"),
    ],
)
def test_what_a_task_defines_and_does_not_say_is_refused(method, said):
    with pytest.raises(ValueError, match=said):
        type("Unsaid", (Task,), {method: lambda self, *given: None})
