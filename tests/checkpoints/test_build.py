import pytest

from keras_vit import from_checkpoint, save_checkpoint, vit
from keras_vit.utils.keras_private import sublayers
from tests.checkpoints.helpers import arrays_of, file_of, write

pytestmark = pytest.mark.backend

TIMM = "timm_vit"


def test_a_model_of_a_published_size_has_its_name(tmp_path):
    path = save_checkpoint(vit("mu/4", image_size=8, num_classes=3), tmp_path / "mu.npz", format="google")
    assert from_checkpoint(path).name == "vit_mu_4" and from_checkpoint(path, name="mine").name == "mine"


def test_a_square_grid_as_one_number():
    assert from_checkpoint(file_of(TIMM), grid=3, num_heads=3).input_shape == (None, 24, 24, 3)


def test_a_size_that_patches_do_not_divide(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(TIMM))
    (tmp_path / "config.json").write_text('{"pretrained_cfg": {"input_size": [3, 29, 29]}}')  # timm leaves 5 pixels out
    assert from_checkpoint(tmp_path, num_heads=3).input_shape == (None, 24, 24, 3)


def test_other_precisions():
    model = from_checkpoint(file_of("google_r50ish"), dtype="mixed_bfloat16")
    assert model.get_layer("stem").units[0].conv1.compute_dtype == "bfloat16"


def test_a_stem_has_the_precision_that_is_asked_for(tmp_path):
    vit("mu/4", stem="conv", image_size=16, patch_size=1, dtype="mixed_bfloat16").save(tmp_path / "half.keras")
    for asked, found in ({}, "float32"), ({"dtype": "mixed_float16"}, "mixed_float16"):
        layers = sublayers(from_checkpoint(tmp_path / "half.keras", **asked).get_layer("stem"))
        assert {layer.dtype_policy.name for layer in layers if layer.weights} == {found}
