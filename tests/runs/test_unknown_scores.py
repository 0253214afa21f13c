import dataclasses
import json
import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.runs import unknown
from tests.marks import slow
from tests.runs.strangers import COLORS, picture, said

pytestmark = slow  # of a fixture that trains

RNG = np.random.default_rng(0)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "looking.md"


@pytest.mark.filterwarnings("ignore:No temperature")
def test_energy_without_pictures(colors, tmp_path):
    out = said("calibrate", colors / "run", "--unknown", "0.1", "--to", tmp_path / "a.keras")
    assert '"none of these" by energy, above' in out and "--unknown-pictures FOLDER would compare" in out
    loaded = keras_vit.load_run(tmp_path / "a.keras")
    rule = loaded.task.unknown
    assert (
        rule["rule"] == "energy"
        and loaded.about.unknown == rule
        and not unknown.vectors_file(tmp_path / "a.keras").exists()
    )
    order = [loaded.task.classes.index(name) for name in ("red", "green", "blue")] * 10
    arrays = np.stack([picture(color, RNG) for color in [*COLORS] * 10]), np.array(order)
    scores = keras_vit.evaluate(loaded, arrays=arrays, unknown=colors / "strange")[loaded.file]
    assert {"accuracy", "unknown_auroc", "false_alarms", "unknown_found"} <= set(scores)
    outputs = loaded.viewer()(np.asarray(arrays[0], "float32"))
    energy = -rule["temperature"] * np.log(np.exp(outputs / rule["temperature"]).sum(-1))
    assert scores["false_alarms"] == pytest.approx((energy > rule["threshold"]).mean())


def block_of(word):
    """Returns the code block of the page that has a word."""
    return next(block for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(), flags=re.S) if word in block)


@pytest.mark.filterwarnings("ignore:No temperature")
def test_lines_of_numpy_apply_an_exported_rule(colors, tmp_path, monkeypatch):
    """The lines on the page, run as they are written."""
    monkeypatch.chdir(tmp_path)
    found = keras_vit.calibrate(colors / "run", unknown=0.3)
    keras_vit.export_tflite(found.model, "model.tflite")
    stated = json.loads(pathlib.Path("model.tflite.json").read_text())["unknown"]
    assert stated == json.loads(json.dumps(found.unknown))
    images = np.stack([picture(color, RNG) for color in [*COLORS, (0, 0, 0)] * 4]).astype("float32")
    logits = keras_vit.export.runtimes.tflite("model.tflite")[0](images)
    names = {"logits": logits, "np": np, "json": json, "pathlib": pathlib}
    exec(block_of("np.log("), names)
    task = keras_vit.load_run(colors / "run").task.of_model(found.model)
    assert names["names"] == [next(iter(task.answer(row))) for row in logits]


def test_lines_of_numpy_apply_a_rule_of_vectors():
    rule = {"rule": "neighbours", "k": 2, "threshold": 0.2}
    vectors, kept = RNG.normal(size=(9, 5)), RNG.normal(size=(40, 5))
    names = {"rule": rule, "vectors": vectors, "kept": kept, "names": ["a"] * 9, "np": np}
    exec(block_of("np.partition("), names)
    from keras_vit.tasks.classify.unknown import distances

    expected = ["none of these" if each > 0.2 else "a" for each in distances(vectors, kept, 2)]
    assert names["names"] == expected


@pytest.mark.filterwarnings("ignore:No temperature")
def test_the_demo_and_the_report_say_it(colors):
    from keras_vit.demo import seeing
    from keras_vit.reporting import gather
    from keras_vit.runs.trained import load_run

    found = keras_vit.calibrate(colors / "run", unknown=0.3)
    loaded = dataclasses.replace(load_run(colors / "run"), model=found.model)
    task, view = loaded.task, loaded.viewer()
    images = np.stack([picture(color, RNG) for color in [*COLORS, (0, 0, 0), (255, 255, 255)] * 4]).astype("float32")
    said = [task.heading(output).startswith("none of these") for output in view(images)]
    assert any(said) and not all(said)
    strange = said.index(True)
    assert "none of these" in seeing.seeing(loaded, {}, 3)(images[strange]).answer
    assert "none of these" not in seeing.seeing(loaded, {}, 3)(images[said.index(False)]).answer
    report = gather.gather(loaded, arrays=(images[[strange] * 4].astype("uint8"), np.arange(4) % 3))
    captions = [each.caption for examples in report.examples.values() for each in examples]
    assert captions and all("predicted none of these" in caption for caption in captions)
