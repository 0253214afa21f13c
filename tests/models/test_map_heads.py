import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.kinds import kind_of
from keras_vit.models.map_heads import head_of, with_head
from tests.marks import few

TOKENS = {"class_token": True}
SIZES = dict(width=8, depth=3, num_heads=2, patch_size=4, pooling="none", num_classes=0, tokens=TOKENS)
DEPTH = {
    "kind": "depth", "blocks": (0, 2), "normed": True, "whole": True, "filters": 4, "factors": (1, 0.5),
    "neck": (3, 5), "readout": "add", "gelu": "exact", "doubles": False, "batch_norm": False, "hidden": 6,
    "end": "sigmoid", "scale": 10.0,
}  # fmt: skip
POSE = {
    "kind": "heatmaps", "blocks": (2,), "normed": True, "keypoints": 5, "classic": False, "scale": 2, "filters": 7,
}  # fmt: skip


@few(1)
@pytest.mark.parametrize(
    "stated, size, output",
    [(DEPTH, (12, 20), (None, 12, 20, 1)), (DEPTH | {"normed": False, "whole": False}, 16, (None, 16, 16, 1)),
     (POSE, (16, 12), (None, 8, 6, 5))],
)  # fmt: skip
def test_a_head_is_read_off_its_model(stated, size, output, tmp_path):
    norm = {"final_norm": "before" if stated["normed"] else None}
    model = with_head(keras_vit.vit(None, **SIZES, image_size=size, **norm), stated)
    assert head_of(model) == stated and model.output_shape == output
    assert kind_of(model).names == (stated["kind"],)
    model.save(tmp_path / "model.keras")
    assert head_of(keras.models.load_model(tmp_path / "model.keras")) == stated
    other = keras_vit.from_checkpoint(tmp_path / "model.keras", image_size=32)  # weights at another size
    assert head_of(other) == stated and other.output_shape[1] in (32, 16)
    same = keras_vit.from_checkpoint(tmp_path / "model.keras")
    images = np.random.default_rng(0).uniform(0, 255, size=(1, *model.input_shape[1:])).astype("float32")
    np.testing.assert_array_equal(np.asarray(model(images)), np.asarray(same(images)))


def test_other_models_have_none():
    assert head_of(keras_vit.vit(None, **SIZES | {"pooling": "gap", "num_classes": 3}, image_size=8)) is None


def test_intermediate_tokens_are_normalized_alike():
    """The one normalization serves all blocks: with a gamma of 0 nothing but its beta is left of any."""
    model = with_head(keras_vit.vit(None, **SIZES, image_size=8), DEPTH)
    model.get_layer("norm").gamma.assign(np.zeros(8))
    images = np.random.default_rng(0).uniform(0, 255, size=(2, 8, 8, 3)).astype("float32")
    first, second = np.asarray(model(images))
    np.testing.assert_array_equal(first, second)
