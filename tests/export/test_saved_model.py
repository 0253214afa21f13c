import json
import subprocess
import sys

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import export_saved_model, preprocess, vit  # noqa: E402
from keras_vit.preparing.preprocessing import evaluation_rule  # noqa: E402
from tests import exiffiles  # noqa: E402
from tests.export.small import IMAGES, tiny  # noqa: E402
from tests.marks import QUICKLY, few, fuller, slow  # noqa: E402

SCRIPT = """
import sys
import numpy as np, tensorflow as tf
images, *folders = sys.argv[1:]
x = tf.constant(np.load(images))
for folder in folders:
    loaded = tf.saved_model.load(folder)
    one, all = loaded.serve(x[:1])["logits"], loaded.serve(x)["logits"]
    np.save(folder + ".npy", np.concatenate([one, all]))
assert "keras_vit" not in sys.modules
"""


@fuller
def test_runs_without_keras_vit_and_agrees(tmp_path):
    rows = [dict(tokens={"distilled": True, "registers": 2}, block={"gelu": "exact"})]
    rows += [] if QUICKLY else [dict(dtype="mixed_bfloat16")]
    models = {tmp_path / f"saved{i}": tiny(**options) for i, options in enumerate(rows)}
    for path, model in models.items():
        report = export_saved_model(model, path, images=IMAGES)
        assert report.path == str(path) and report.agreement == 1 and report.bytes > 10_000
    np.save(tmp_path / "images.npy", IMAGES.astype("float32"))
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "images.npy", *models], check=True, cwd=tmp_path)
    for (path, model), options in zip(models.items(), rows):
        expected = model.predict(IMAGES, verbose=0)
        found = np.load(f"{path}.npy")
        tolerance = 0.05 if "dtype" in options else 1e-4  # the export is float32: bfloat16 keeps 8 bits
        np.testing.assert_allclose(found[1:], expected, atol=tolerance * np.abs(expected).max())
        np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_each_weight_is_written_once_and_no_other(tmp_path):
    model = tiny(dropout=0.1)  # whose state of the generator is not needed
    export_saved_model(model, tmp_path / "saved")
    reader = tf.train.load_checkpoint(tmp_path / "saved" / "variables" / "variables")
    shapes = [shape for name, shape in reader.get_variable_to_shape_map().items() if "OBJECT_GRAPH" not in name]
    assert sorted(map(tuple, shapes)) == sorted(tuple(weight.shape) for weight in model.trainable_weights)
    assert sorted(tf.saved_model.load(tmp_path / "saved").signatures) == ["serve", "serve_bytes", "serving_default"]


def test_bad_input_is_an_error_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="multiply by 255"):
        export_saved_model(tiny(), tmp_path / "saved", images=IMAGES / 255)
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there"):
        export_saved_model(tiny(), tmp_path / "there")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_photographs_are_decoded_and_turned_as_here(tmp_path):
    shape = exiffiles.picturefiles.COLOR.shape
    model = vit("mu/4", image_size=shape[:2], num_classes=4, depth=1)  # without resizing
    model.get_layer("head").kernel.assign(np.random.default_rng(1).normal(size=model.get_layer("head").kernel.shape))
    export_saved_model(model, tmp_path / "saved")
    serve = tf.saved_model.load(tmp_path / "saved").signatures["serve_bytes"]
    files = {name: data for name, (data, _) in {**exiffiles.every(), "none.jpg": (exiffiles.jpeg(None), 1)}.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="A file must be a JPEG or PNG"):
        serve(encoded=tf.constant([files["1.webp"]]))
    files = {name: data for name, data in files.items() if not name.endswith("webp")}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    expected = model(preprocess(model, [tmp_path / name for name in files])).numpy()
    found = serve(encoded=tf.constant([*files.values()]))["logits"].numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


@slow
def test_a_model_of_another_range_says_it_and_takes_no_files(tmp_path):
    model = tiny(value_range=(-1024, 3071))
    export_saved_model(model, tmp_path / "saved", images=IMAGES.astype("float32") * 16 - 1024)
    assert "serve_bytes" not in tf.saved_model.load(tmp_path / "saved").signatures
    facts = json.loads((tmp_path / "saved" / "assets.extra" / "keras_vit.json").read_text())
    assert facts["input"]["range"] == [-1024, 3071]
    with pytest.raises(ValueError, match="pixels from -1024 to 3071. Received: values from 0 to 65"):
        export_saved_model(model, tmp_path / "other", images=IMAGES * np.uint16(257))


@few(1)
@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"resize": "crop", "crop_pct": 0.9, "interpolation": "bicubic", "antialias": True},
        {"resize": "squash", "crop_pct": 0.8, "interpolation": "bicubic", "antialias": True},
        {"resize": "crop", "crop_pct": 0.9, "crop_offset": "floor", "interpolation": "bicubic", "antialias": True},
        {"resize": "aspect", "interpolation": "bilinear", "antialias": True},
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
    assert facts["labels"] == ["a", "b", "c", "d"] and facts["preprocessing"] == evaluation_rule(model)


def test_another_shape_is_refused_by_the_file(tmp_path):
    """TensorFlow compares no shape with a loaded signature's; a list of numbers ended the process in oneDNN."""
    model = vit("mu/4", image_size=8, depth=1, num_classes=2)
    export_saved_model(model, tmp_path / "model")
    serve = tf.saved_model.load(tmp_path / "model").signatures["serve"]
    for shape in ((1,), (1, 8, 8), (1, 7, 8, 3), (1, 8, 8, 1), (1, 1, 8, 8, 3)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not compatible with expected shape"):
            serve(images=tf.zeros(shape))
