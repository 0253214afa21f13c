"""Models of clips in every format."""

import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import examples, runtimes
from keras_vit.traits import Traits
from tests.checkpoints.helpers import randomized
from tests.export.test_metadata import read
from tests.marks import few, slow

SMALL = dict(variant=None, frames=4, image_size=(8, 12), patch_size=4, width=16, depth=1, num_heads=2, num_classes=5)


def small(**options):
    return randomized(keras_vit.video_vit(**{**SMALL, **options}))


@slow
@few(1)
@pytest.mark.parametrize("options", [{"time_depth": 1}, {}])
def test_every_format_gives_the_model_s_outputs(tmp_path, untimed, options):
    model = small(metadata={"labels": list("abcde")}, **options)
    given = examples.drawn(Traits(model), 5)
    assert given.shape == (5, 4, 8, 12, 3) and given.max() > 250
    expected = np.asarray(model(given))
    written = {
        "saved": (keras_vit.export_saved_model, runtimes.saved_model, {}),
        "m.tflite": (keras_vit.export_tflite, runtimes.tflite, {}),
        "half.tflite": (keras_vit.export_tflite, runtimes.tflite, {"quantize": "float16", "batch_size": 3}),
        "m.onnx": (keras_vit.export_onnx, runtimes.onnx, {}),
    }
    for name, (export, load, settings) in written.items():
        report = export(model, tmp_path / name, **settings)
        assert "on 8 clips: largest" in str(report) and report.max_abs_diff < 5e-3 * report.range
        tolerance = 0.1 if name == "half.tflite" else 1e-3
        np.testing.assert_allclose(load(tmp_path / name)[0](given), expected, atol=tolerance, err_msg=name)
    about = json.loads((tmp_path / "m.tflite.json").read_text())
    assert about["input"]["shape"] == [None, 4, 8, 12, 3] and about["labels"] == list("abcde")
    [graph] = read(tmp_path / "m.tflite").parts(3)
    assert [given.text(0) for given in graph.parts(2)] == ["clips"]
    file = runtimes.opened(tmp_path / "m.tflite", 1)
    ranks = {len(one["shape"]) for one in file.get_tensor_details() if "clips" not in one["name"]}
    assert max(ranks) <= 4


def test_what_is_for_images_is_refused(tmp_path, untimed):
    model = small()
    clips = np.zeros((3, 4, 8, 12, 3), "uint8")
    for call, message in (
        (
            lambda: keras_vit.export_tflite(model, tmp_path / "m.tflite", quantize="int8"),
            "of images alone.*takes clips",
        ),
        (lambda: keras_vit.export_tflite(model, tmp_path / "m.tflite", input_dtype="uint8"), "is for models of images"),
        (
            lambda: keras_vit.export_tflite(model, tmp_path / "m.tflite", images=clips[:, :3]),
            r"shape \(batch, 4, 8, 12",
        ),
        (lambda: keras_vit.predictor(model), "must be a Keras model of images"),
        (lambda: keras_vit.save_checkpoint(model, tmp_path / "m.npz", format="google"), "which takes clips"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert not [*tmp_path.iterdir()]
