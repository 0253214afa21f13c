import warnings

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import forms, half
from keras_vit.traits import Traits
from tests import clipsegs
from tests.export.small import IMAGES, tiny
from tests.marks import few, slow
from tests.towers import WORDS


def with_large_channels(size):
    """A model with channels of this size in its residual stream, as trained ViTs have."""
    model = tiny(depth=2)
    bias = model.get_layer("block_0").mlp.fc2.bias
    values = np.zeros(bias.shape)
    values[[3, 9]] = size, -size
    bias.assign(values)
    return model


def test_large_channels_are_right_in_float16_which_they_were_not():
    model = with_large_channels(10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        [found] = half.compare_with_float32(Traits(model), IMAGES.astype("float32"))
    assert found.images == 4 and found.agreement == 1
    assert 0 < found.max_abs_diff < 0.05 * np.ptp(model.predict(IMAGES, verbose=0))
    before = forms.export_copy(model, half=False, dtype="mixed_float16")(IMAGES.astype("float32"), training=False)
    exact = model.predict(IMAGES, verbose=0)
    assert not np.abs(np.asarray(before, "float32") - exact).max() < 0.3 * np.ptp(exact)


def test_what_float16_cannot_hold_is_said():
    with pytest.warns(UserWarning, match="In float16 the outputs .* let the GPU compute in float32"):
        [found] = half.compare_with_float32(Traits(with_large_channels(100_000)), IMAGES.astype("float32"))
    assert not found.max_abs_diff < 1


@slow
def test_the_report_of_a_float16_file_says_it(tmp_path, untimed):
    report = keras_vit.export_tflite(tiny(), tmp_path / "a.tflite", quantize="float16", images=IMAGES)
    assert report.on("float16").agreement == 1 and "as a phone's GPU computes, on 4 images" in str(report)
    plain = keras_vit.export_tflite(tiny(), tmp_path / "b.tflite", images=IMAGES)
    assert plain.on("float16") is None and "phone" not in str(plain)


@few(1)
@pytest.mark.parametrize("name", ["mnist", "cifar10_hybrid", "nuclei"])
def test_shipped_models_are_right_in_float16(name):
    model = keras_vit.from_recipe(name, pretrained=True)
    images = np.random.default_rng(0).integers(0, 256, (4, *model.input_shape[1:])).astype("float32")
    [found] = half.compare_with_float32(Traits(model), images)
    assert found.agreement > 0.999 and found.max_abs_diff < 0.05 * np.ptp(model(images))


def test_norms_with_scale_and_shift_stay_in_float16():
    segmenter = keras_vit.zero_shot_segmenter(clipsegs.shared(), ["a cat"], WORDS)  # its decoder's are not folded
    pixels = np.random.default_rng(0).integers(0, 256, (2, clipsegs.SIDE, clipsegs.SIDE, 3)).astype("float32")
    [found] = half.compare_with_float32(Traits(segmenter), pixels)
    assert found.max_abs_diff < 0.05
