import json
import subprocess
import sys

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit import export_saved_model, preprocess, vit  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 8, 3)).astype("uint8")


def tiny(**options):
    model = vit("mu/4", image_size=(12, 8), num_classes=4, **options)
    model.get_layer("head").kernel.assign(np.random.default_rng(1).normal(size=model.get_layer("head").kernel.shape))
    return model


@pytest.mark.parametrize(
    "options", [dict(), dict(dtype="mixed_bfloat16"), dict(distilled=True, registers=2, gelu="exact")]
)
def test_runs_without_keras_vit_and_agrees(options, tmp_path):
    model = tiny(**options)
    report = export_saved_model(model, tmp_path / "saved", images=IMAGES)
    assert report.path == str(tmp_path / "saved") and report.agreement == 1 and report.bytes > 10_000
    np.save(tmp_path / "images.npy", IMAGES.astype("float32"))
    script = (
        "import sys, numpy as np, tensorflow as tf\n"
        f"loaded = tf.saved_model.load({str(tmp_path / 'saved')!r})\n"
        f"x = tf.constant(np.load({str(tmp_path / 'images.npy')!r}))\n"
        "assert 'keras_vit' not in sys.modules\n"
        "one, all = loaded.serve(x[:1])['logits'], loaded.serve(x)['logits']\n"
        f"np.save({str(tmp_path / 'logits.npy')!r}, np.concatenate([one, all]))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
    expected = model.predict(IMAGES, verbose=0)
    tolerance = 0.05 if "dtype" in options else 1e-4  # the export is float32: bfloat16 keeps 8 bits
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy")[1:], expected, atol=tolerance * np.abs(expected).max())


def test_bad_input_is_named_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="multiply by 255"):
        export_saved_model(tiny(), tmp_path / "saved", images=IMAGES / 255)
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there"):
        export_saved_model(tiny(), tmp_path / "there")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"resize": "crop", "crop_pct": 0.9, "interpolation": "bicubic", "antialias": True},
        {"resize": "direct", "interpolation": "bilinear", "antialias": False, "full_size": [14, 9]},
    ],
)
def test_files_are_taken_as_they_are(rule, tmp_path):
    model = tiny(metadata={"evaluation": rule})
    export_saved_model(model, tmp_path / "saved", labels=["a", "b", "c", "d"], probabilities=True)
    picture = np.random.default_rng(0).integers(0, 256, (52, 32, 3)).astype("uint8")
    keras.utils.save_img(tmp_path / "a.png", picture, scale=False)
    loaded = tf.saved_model.load(tmp_path / "saved")
    encoded = tf.constant([(tmp_path / "a.png").read_bytes()] * 3)
    found = loaded.signatures["serve_bytes"](encoded=encoded)["probabilities"].numpy()
    expected = keras.ops.softmax(model(preprocess(model, tmp_path / "a.png"))).numpy()
    np.testing.assert_allclose(found, np.repeat(expected, 3, axis=0), atol=0.03)  # Pillow rounds to bytes
    facts = json.loads((tmp_path / "saved" / "assets.extra" / "keras_vit.json").read_text())
    assert facts["labels"] == ["a", "b", "c", "d"] and facts["preprocessing"] == rule


def test_class_names_travel_into_the_export(tmp_path):
    model = keras_vit.from_recipe("mnist", pretrained=True)
    export_saved_model(model, tmp_path / "mnist")
    told = json.loads((tmp_path / "mnist" / "assets.extra" / "keras_vit.json").read_text())
    assert told["labels"] == list("0123456789")
