"""What works on Keras's OpenVINO backend, which only predicts, and what says that it does not."""

import os
import subprocess
import sys

import numpy as np
import pytest

import keras_vit
from tests.marks import slow

SCRIPT = """
import sys
import keras, numpy as np, keras_vit

folder, images = sys.argv[1], np.load(sys.argv[1] + "/images.npy")
found = {"mnist": keras_vit.from_pretrained("mnist").predict(images, verbose=0)}
model = keras.models.load_model(folder + "/small.keras")
small = np.repeat(images[:, :16, :16], 3, -1)
found["small"], found["maps"] = model.predict(small, verbose=0), keras_vit.attention_maps(model, small)
loaded = keras_vit.from_checkpoint(folder + "/small.safetensors", block={"gelu": "tanh"})
found["timm"] = loaded.predict(small, verbose=0)
found["read"] = keras_vit.preprocess(model, [folder + "/photo.png"])
np.savez(folder + "/found.npz", **found)
for call in (
    lambda: keras_vit.export_openvino(model, folder + "/a.xml"),
    lambda: keras_vit.export_onnx(model, folder + "/a.onnx"),
    lambda: keras_vit.export_tflite(model, folder + "/a.tflite"),
    lambda: keras_vit.export_saved_model(model, folder + "/a"),
    lambda: keras_vit.predictor(model),
    lambda: keras_vit.fit("digits", workdir=folder + "/run"),
    lambda: keras_vit.attention_relevance(model, small),
):
    try:
        call()
    except (RuntimeError, NotImplementedError) as error:
        print(error)
"""


@slow
def test_loading_and_prediction_work_and_the_rest_is_refused(tmp_path):
    pytest.importorskip("openvino")
    from PIL import Image

    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28, 1)).astype("uint8")
    np.save(tmp_path / "images.npy", images)
    Image.fromarray(images[0].repeat(3, -1)).save(tmp_path / "photo.png")
    model = keras_vit.vit("mu/4", image_size=16, num_classes=4)
    model.save(tmp_path / "small.keras")
    with pytest.warns(UserWarning, match="does not record"):
        keras_vit.save_checkpoint(model, tmp_path / "small.safetensors", format="timm")
    small = np.repeat(images[:, :16, :16], 3, -1)
    expected = {
        "mnist": keras_vit.from_pretrained("mnist").predict(images, verbose=0),
        "small": model.predict(small, verbose=0),
        "timm": model.predict(small, verbose=0),
        "maps": keras_vit.attention_maps(model, small),
        "read": keras_vit.preprocess(model, [tmp_path / "photo.png"]),
    }
    command, environment = [sys.executable, "-c", SCRIPT, tmp_path], {**os.environ, "KERAS_BACKEND": "openvino"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "found.npz")
    for name, values in expected.items():  # in bfloat16, where the processor has it
        assert np.abs(found[name] - values).max() < 0.05 * max(np.ptp(values), 1), name
    refusals = done.stdout.splitlines()
    assert len(refusals) == 7 and all(refusal.strip() for refusal in refusals)
    assert all("backend 'openvino'" in refusal or "KERAS_BACKEND=openvino" in refusal for refusal in refusals)
    assert not list(tmp_path.glob("a*")) and not (tmp_path / "run").exists()
