"""The Python lines of `docs/on_device.md` for a device."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from tests.marks import slow

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "on_device.md"


@slow
def test_interpreter_and_compiled_model_of_the_page_agree_with_keras(tmp_path):
    model = keras_vit.from_recipe("mnist", pretrained=True)
    keras_vit.export_tflite(model, tmp_path / "mnist.tflite")
    pixels = np.random.default_rng(0).integers(0, 256, (1, 28, 28, 1)).astype("float32")
    np.save(tmp_path / "pixels.npy", pixels)
    blocks = [block for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL) if "mnist.tflite" in block]
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        script = f"import numpy as np\npixels = np.load('pixels.npy')\n{block}\nnp.save('{number}.npy', logits)\n"
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
        found = np.load(tmp_path / f"{number}.npy").reshape(1, 10)
        np.testing.assert_allclose(found, model.predict(pixels, verbose=0), atol=1e-4)
