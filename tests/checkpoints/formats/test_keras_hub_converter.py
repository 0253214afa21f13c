"""KerasHub's image converters as mean, deviation and rule."""

import numpy as np
import pytest

from keras_vit import from_pretrained
from keras_vit.checkpoints.formats.keras_hub_converter import read_converter
from keras_vit.checkpoints.tables import Missing
from tests.checkpoints.formats.test_keras_hub import copied

CONVERTER = "task__config__preprocessor__config__image_converter__config__"


@pytest.mark.parametrize("scale", [None, 1 / 127.5, [0.01, 0.02, 0.03], [0.01]])
@pytest.mark.parametrize("offset", [None, 0.5, [-1, -2, -3]])
def test_pixels_are_scaled_and_shifted_the_same(scale, offset):
    converter = {"image_size": [8, 8], "scale": scale, "offset": offset}
    statistics, rule, origins = read_converter(converter, "task.json", (8, 8))
    x = np.random.default_rng(0).uniform(0, 255, (4, 4, 3))
    theirs = x * np.array(1 if scale is None else scale) + np.array(0 if offset is None else offset)
    np.testing.assert_allclose((x / 255 - statistics["mean"]) / statistics["std"], theirs, atol=1e-10)
    assert rule["resize"] == "aspect" and rule["as_floats"] and not rule["antialias"]
    assert origins == {"mean": "task.json", "evaluation": "task.json"}


def test_without_a_converter_the_caller_says_it():
    statistics, rule, origins = read_converter(None, "task.json", (8, 8))
    assert not statistics and not rule and {*map(type, origins.values())} == {Missing}


def test_pixels_that_no_converter_prepared(tmp_path):
    folder = copied("vit", tmp_path / "raw", task__config__preprocessor=None)
    model = from_pretrained(folder, mean=0.0, std=1 / 255)
    assert model.get_layer("rescale").std == 1 / 255
    for number, (change, said) in enumerate(
        [
            ({"image_size": None}, "resizes no image"),
            ({"dtype": {"config": {"name": "mixed_bfloat16"}}}, "pixels in mixed_bfloat16"),
        ]
    ):
        changes = {f"{CONVERTER}{name}": value for name, value in change.items()}
        folder = copied("vit", tmp_path / str(number), **changes)
        with pytest.warns(UserWarning, match=said):
            from_pretrained(folder)
