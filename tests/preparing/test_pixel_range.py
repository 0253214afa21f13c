import warnings

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import check_data, vit
from keras_vit.preparing.pixel_range import checked, range_of, rescales_nothing
from keras_vit.utils import checks
from tests.small import Around

pytestmark = pytest.mark.backend

BYTES = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3))
SMALL = dict(image_size=8, num_classes=2, depth=1)


def model(*first, end=()):
    """Returns a ViT that is put together by hand, with layers or functions before its patches."""
    x = inputs = keras.Input((8, 8, 3))
    for layer in first:
        x = layer(x)
    x = keras_vit.PatchEncoder(16)(keras_vit.Patches(4)(x))
    x = keras_vit.TransformerBlock(2, 32)(x)
    return keras.Model(inputs, keras.layers.Dense(2)(keras_vit.TokenPool("gap")(x)), name="mine")


def normalization(mean, variance):
    return keras.layers.Normalization(mean=mean, variance=variance)


class Custom(keras.layers.Layer):
    def call(self, x):
        return x / 127.5 - 1.0


def mobile():
    stem = keras.Input((8, 8, 3))
    x = keras.layers.Rescaling(1 / 255)(stem)
    return keras.Model(stem, keras.layers.Conv2D(3, 3, padding="same", data_format="channels_last")(x))


FLIP = keras.layers.RandomFlip(data_format="channels_last")
RESCALED = {
    "Rescale": ([keras_vit.Rescale()], (0, 255)),
    "Rescale of another range": ([keras_vit.Rescale(value_range=(-1024, 3071))], (-1024, 3071)),
    "Rescaling to 0..1": ([keras.layers.Rescaling(1 / 255)], (0, 255)),
    "Rescaling to -1..1": ([keras.layers.Rescaling(1 / 127.5, offset=-1)], (0, 255)),
    "Rescaling of 16 bits": ([keras.layers.Rescaling(1 / 65535)], (0, 65535)),
    "Rescaling of shares": ([keras.layers.Rescaling(2.0, offset=-1.0)], (0, 1)),
    "Normalization of bytes": ([normalization([120.0, 110.0, 100.0], [3600.0, 3000.0, 4000.0])], (0, 255)),
    "Normalization of shares": ([normalization(0.45, 0.05)], (0, 1)),
    "after Rescaling": ([keras.layers.Rescaling(1 / 255), normalization(0.45, 0.05)], (0, 255)),
    "an operation": ([lambda x: x / 255.0], (0, 255)),
    "operations": ([lambda x: (x - 127.5) / 127.5], (0, 255)),
    "a layer of one's own": ([Custom()], (0, 255)),
    "with augmentation": ([FLIP, keras.layers.Rescaling(1 / 255)], (0, 255)),
    "in a sequence": ([keras.Sequential([keras.layers.RandomFlip(), keras.layers.Rescaling(1 / 255)])], (0, 255)),
    "Rescale of what was shares": ([keras.layers.Rescaling(255.0), keras_vit.Rescale()], (0, 1)),
    "a network inside": ([mobile()], (0, 255)),
}  # fmt: skip


@pytest.mark.parametrize("name", RESCALED)
def test_the_range_follows_from_what_rescales(name):
    first, known = RESCALED[name]
    made = model(*first)
    assert range_of(made) == known and not rescales_nothing(made)
    assert range_of(keras.Sequential([keras.Input((8, 8, 3)), made])) == known
    share = np.random.default_rng(0).random((4, 8, 8, 3))
    with warnings.catch_warnings(action="error"):
        check_data(made, known[0] + share * (known[1] - known[0]), [0, 1, 0, 1])
    if known[0] == 0 and known[1] > 1:
        with pytest.raises(ValueError, match=f"from {known[0]} to {known[1]}: the model rescales them itself"):
            check_data(made, share, [0, 1, 0, 1])


NOTHING = {
    "nothing": [],
    "augmentation": [FLIP],
    "another unit": [keras.layers.Rescaling(1.0)],
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_rescales_nothing_is_said_of_large_pixels_alone(name):
    made = model(*NOTHING[name])
    assert range_of(made) is None and rescales_nothing(made)
    with pytest.warns(UserWarning, match=r"'mine' rescales no pixels.*keras_vit.Rescale\(\).*values up to 25"):
        check_data(made, BYTES, [0, 1, 0, 1])
    with warnings.catch_warnings(action="error"):
        check_data(made, BYTES / 255, [0, 1, 0, 1])
        check_data(made, BYTES / 127.5 - 1, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="must contain finite numbers"):
        check_data(made, BYTES * np.nan, [0, 1, 0, 1])


@pytest.mark.parametrize(
    "first",
    [
        [keras.layers.BatchNormalization()],
        [keras.layers.Conv2D(3, 3, padding="same", data_format="channels_last"), keras.layers.BatchNormalization()],
        [keras.layers.LayerNormalization()],
        [lambda x: keras.ops.log1p(x)],
        [normalization(2000.0, 250_000.0)],
    ],
)
def test_nothing_is_said_where_it_cannot_be_told(first):
    made = model(*first)
    assert range_of(made) is None and not rescales_nothing(made)
    with warnings.catch_warnings(action="error"):
        check_data(made, BYTES, [0, 1, 0, 1])
        check_data(made, BYTES / 255, [0, 1, 0, 1])


def test_other_models():
    assert range_of(keras.Sequential([keras.layers.Flatten()])) is None
    any_size = keras.Input((None, None, 3))
    x = keras.layers.Conv2D(4, 3, data_format="channels_last")(keras.layers.Rescaling(1 / 255)(any_size))
    assert range_of(keras.Model(any_size, x)) == (0, 255)
    clips = keras_vit.video_vit("mu/4", frames=2, image_size=8, num_classes=2, depth=1)
    assert range_of(clips) == (0, 255)
    inner = vit("mu/4", **SMALL)
    assert range_of(Around(inner)) == (0, 255)
    each = keras.Input((2, 8, 8, 3))
    assert range_of(keras.Model(each, keras.layers.TimeDistributed(inner)(each))) == (0, 255)


def test_a_model_s_range_is_asked_for_by_what_checks_images():
    scans = np.linspace(0, 4095, 4 * 64).reshape(4, 8, 8, 1).astype("uint16")
    scanned = vit("mu/4", channels=1, value_range=(0, 4095), **SMALL)
    for each in (scanned, keras.Sequential([keras.Input((8, 8, 1)), scanned])):
        assert range_of(each) == (0, 4095)
        check_data(each, scans, [0, 1, 0, 1])
        with pytest.raises(ValueError, match="pixels from 0 to 4095. Received: values from 0 to 4096"):
            check_data(each, scans + (scans == 4095), [0, 1, 0, 1])
        with pytest.raises(ValueError, match="from 0 to 1; multiply by 4095"):
            check_data(each, scans / 4095, [0, 1, 0, 1])
    shares = vit("mu/4", channels=1, value_range=(0, 1), **SMALL)
    check_data(shares, scans / 4095, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="0 to 255, or in the `value_range` .* Received: values from 0 to 4095"):
        checks.pixels(scans)


def test_whatever_takes_images_of_a_model_by_hand_says_so(tmp_path):
    made = model()
    file = tmp_path / "image.png"
    keras.utils.save_img(file, BYTES[0], scale=False)
    with pytest.raises(ValueError, match=r"rescale them first.*a model that rescales nothing.*image.png"):
        keras_vit.preprocess(made, [file])
    for call in (keras_vit.preprocess, keras_vit.attention_maps, keras_vit.attention_rollout, checked):
        with pytest.warns(UserWarning, match="'mine' rescales no pixels"):
            call(made, BYTES)
        with warnings.catch_warnings(action="error"):
            call(made, BYTES / 255)
    np.testing.assert_allclose(keras_vit.preprocess(made, BYTES / 255), BYTES / 255, atol=1e-6)
    assert keras_vit.preprocess(model(keras.layers.Rescaling(1 / 255)), [file]).max() > 200


@pytest.mark.parametrize("kind", ["uint8", "int64", "float32"])
def test_pictures_of_zeros_and_ones_are_told_before_training(kind):
    binary = (BYTES > 127).astype(kind)
    made = model(keras_vit.Rescale())
    with pytest.raises(ValueError, match="zeros and ones alone, which would all be nearly black; multiply by 255"):
        check_data(made, binary, [0, 1, 0, 1])
    check_data(made, binary * np.array(255, kind), [0, 1, 0, 1])
    check_data(made, binary * 0, [0, 1, 0, 1])  # black is black
    for takes_them in (model(keras_vit.Rescale(value_range=(0, 1))), model()):
        check_data(takes_them, binary, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="zeros and ones"):
        check_data(made, [(binary[:2], [0, 1]), (binary[2:], [0, 1])])


TWICE = [[keras.layers.Rescaling(1 / 255), keras_vit.Rescale()], [keras.layers.Rescaling(1 / 65535)]]


@pytest.mark.parametrize("first", TWICE)
def test_pixels_that_are_rescaled_twice_are_told(first):
    with pytest.warns(UserWarning, match="nearly black: does it rescale them twice.*up to 25"):
        check_data(model(*first), BYTES, [0, 1, 0, 1])


@pytest.mark.parametrize("mean", [127.5, [103.939, 116.779, 123.68]])
def test_pixels_that_are_centered_alone_are_bytes(mean):
    inputs = keras.Input((8, 8, 3))
    x = keras_vit.PatchEncoder(8)(keras_vit.Patches(4)(inputs[..., ::-1] - np.float32(mean)))
    model = keras.Model(inputs, keras.layers.Dense(2)(keras_vit.TokenPool()(x)))
    assert range_of(model) == (0, 255)


@pytest.mark.parametrize("scale", [1 / 4, 1 / 16, 1 / 64, 1 / 100, 1 / 1000])
def test_what_leads_to_other_numbers_cannot_be_told(scale):
    assert range_of(model(keras.layers.Rescaling(scale))) is None
