import functools
import importlib.util
import os
import pathlib
from functools import partial

import keras
import numpy as np
import pytest
from PIL import Image

from keras_vit import preprocess, vit
from keras_vit.models.metadata import stated_labels
from tests.checkpoints.helpers import unexpected
from tests.small import peak

pytestmark = pytest.mark.backend

CROP = {"resize": "crop", "crop_pct": 0.9, "interpolation": "bicubic", "antialias": True}
DIRECT = {"resize": "direct", "crop_pct": None, "interpolation": "bilinear", "antialias": False}
PHOTO = np.random.default_rng(0).integers(0, 256, (37, 50, 3)).astype("uint8")


@functools.cache
def built(size, channels):
    return vit("mu/4", image_size=size, channels=channels, depth=1)


def model(rule=None, size=16, channels=3):
    """Returns a model with an evaluation rule: always the same one of its size."""
    model = built(size, channels)
    model.get_layer("rescale").metadata = {"evaluation": rule} if rule else {}
    return model


def test_gray_arrays_are_read_as_gray_files_are(tmp_path):
    Image.fromarray(PHOTO[..., 0]).save(tmp_path / "gray.png")
    wanted = preprocess(model(), tmp_path / "gray.png")
    for given in (PHOTO[..., 0], PHOTO[..., :1], PHOTO[..., 0].astype("uint16"), PHOTO[..., 0].astype("float32")):
        np.testing.assert_allclose(preprocess(model(), given), wanted, atol=1e-4)


@pytest.mark.parametrize("rule", [CROP, DIRECT])
@pytest.mark.parametrize("low, high", [(0, 4095), (-1024, 3071), (0, 1)])
def test_a_model_of_another_range_takes_arrays_in_it(rule, low, high, tmp_path):
    scaled = low + PHOTO.astype("float32") / 255 * (high - low)
    mine = vit("mu/4", image_size=16, depth=1, value_range=(low, high), metadata={"evaluation": rule})
    found = (preprocess(mine, scaled) - low) / (high - low) * 255
    np.testing.assert_allclose(found, preprocess(model(rule), PHOTO.astype("float32")), atol=0.05)
    with pytest.raises(ValueError, match=f"pixels from {low} to {high}. Received"):
        preprocess(mine, scaled - 2 * (high - low))
    Image.fromarray(PHOTO).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=f"a model of {low} to {high}, and .*a.png'. Call model.predict with arrays"):
        preprocess(mine, tmp_path / "a.png")


def test_twelve_bits_in_a_file_of_sixteen_are_warned_of(tmp_path):
    for name, most in (("dark", 4095), ("full", 65535)):
        values = np.linspace(0, most, 37 * 50).reshape(37, 50).astype("uint16")
        Image.fromarray(values).save(tmp_path / f"{name}.png")
    for given in (tmp_path / "dark.png", Image.open(tmp_path / "dark.png")):
        with pytest.warns(UserWarning, match="16-bit image has no value above 4095 of 65535"):
            assert preprocess(model(), given).max() < 16
    preprocess(model(), tmp_path / "full.png")  # warnings are errors here


@pytest.mark.parametrize("shape", [(37, 50), (50, 37), (10, 10), (300, 20)])
def test_crop_is_torchvision_s(shape):
    photo = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype("uint8")
    found = preprocess(model(CROP), [photo])
    short = 17  # floor(16 / 0.9)
    height, width = (int(short * side / min(shape)) for side in shape)
    resized = np.asarray(Image.fromarray(photo).resize((width, height), Image.Resampling.BICUBIC))
    top, left = round((height - 16) / 2), round((width - 16) / 2)
    np.testing.assert_array_equal(found[0], resized[top : top + 16, left : left + 16])
    assert found.dtype == "float32"


def test_a_squashed_image_is_cut_as_deit_s_processor_does():
    found = preprocess(model({**CROP, "resize": "squash", "crop_offset": "floor"}), [PHOTO])
    resized = np.asarray(Image.fromarray(PHOTO).resize((17, 17), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(found[0], resized[:16, :16])
    timm = preprocess(model({**CROP, "resize": "squash", "crop_pct": 16 / 19}), [PHOTO])
    resized = np.asarray(Image.fromarray(PHOTO).resize((19, 19), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(timm[0], resized[2:18, 2:18])  # 3 are left, and round(1.5) is 2
    pair = preprocess(model({**CROP, "resize": "squash", "crop_pct": [16 / 18, 16 / 24]}), [PHOTO])
    resized = np.asarray(Image.fromarray(PHOTO).resize((24, 18), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(pair[0], resized[1:17, 4:20])


@pytest.mark.parametrize("shape", [(16, 31), (31, 16), (46, 32), (90, 20)])
def test_transformers_cuts_at_the_half_rounded_down(shape):
    """The rest of the longer side is 15, 15, 7 and 56 pixels; torchvision rounds 7.5 and 3.5 up."""
    photo = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype("uint8")
    height, width = (16 * side // min(shape) for side in shape)
    resized = np.asarray(Image.fromarray(photo).resize((width, height), Image.Resampling.BICUBIC))
    top, left = (height - 16) // 2, (width - 16) // 2
    found = preprocess(model({**CROP, "crop_pct": 1.0, "crop_offset": "floor"}), [photo])
    np.testing.assert_array_equal(found[0], resized[top : top + 16, left : left + 16])


@pytest.mark.parametrize("size", [(16, 16), (12, 20), (20, 12)])
def test_images_are_cut_to_the_aspect_ratio_as_keras_does(size, tmp_path):
    pytest.importorskip("tensorflow", reason="Keras reads folders with TensorFlow")
    shapes = [(37, 50), (50, 37), (300, 21), (9, 10)]
    for i, shape in enumerate(shapes):
        pixels = np.random.default_rng(i).integers(0, 256, (*shape, 3)).astype("uint8")
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    theirs = keras.utils.image_dataset_from_directory(
        tmp_path, labels=None, image_size=size, crop_to_aspect_ratio=True, shuffle=False, verbose=0
    )
    found = preprocess(model({**DIRECT, "resize": "aspect"}, size=size), sorted(tmp_path.iterdir()))
    np.testing.assert_allclose(found, np.concatenate([np.asarray(batch) for batch in theirs]), atol=1e-3)


def test_a_window_is_the_center_as_it_is():
    rule = {**DIRECT, "resize": "window"}
    np.testing.assert_array_equal(preprocess(model(rule), PHOTO)[0], PHOTO[10:26, 17:33])
    np.testing.assert_array_equal(preprocess(model(rule), PHOTO[:16, :16])[0], PHOTO[:16, :16])
    np.testing.assert_array_equal(preprocess(model(rule), PHOTO[:, :49])[0], PHOTO[10:26, 16:32])
    smaller = preprocess(model(rule), PHOTO[:10, :10])  # is enlarged
    np.testing.assert_array_equal(smaller, preprocess(model(DIRECT), PHOTO[:10, :10]))


def test_direct_with_pillow():
    found = preprocess(model({**DIRECT, "antialias": True}, size=(12, 16)), PHOTO)
    expected = Image.fromarray(PHOTO).resize((16, 12), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(found[0], np.asarray(expected))


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_direct_is_tensorflow_s(interpolation, antialias):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    rule = {**DIRECT, "interpolation": interpolation, "antialias": antialias}
    theirs = tf.image.resize(PHOTO, (12, 64), interpolation, antialias=antialias).numpy()
    floats = preprocess(model({**rule, "as_floats": True}, size=(12, 64)), [PHOTO])
    np.testing.assert_allclose(floats[0], theirs, atol=1e-3)
    if not antialias:  # else Pillow rounds
        found = preprocess(model(rule, size=(12, 64)), [PHOTO])
        np.testing.assert_allclose(found[0], np.clip(theirs, 0, 255), atol=1e-3)
    np.testing.assert_array_equal(*(preprocess(model(rule), [PHOTO]) for rule in (DIRECT, {})))  # of one without a rule


def test_rectangles_are_covered_and_cut():
    found = preprocess(model(CROP, size=(16, 32)), [PHOTO])
    ratio = min(37 / 17, 50 / 35)
    size = round(50 / ratio), round(37 / ratio)
    resized = np.asarray(Image.fromarray(PHOTO).resize(size, Image.Resampling.BICUBIC))
    top, left = round((size[1] - 16) / 2), round((size[0] - 32) / 2)
    np.testing.assert_array_equal(found[0], resized[top : top + 16, left : left + 32])


@pytest.mark.parametrize("rule", [DIRECT, CROP], ids=["direct", "crop"])
def test_a_margin_that_makes_no_patch_is_cut_off(rule):
    whole = preprocess(model(rule, size=16), [PHOTO])
    np.testing.assert_array_equal(
        preprocess(model({**rule, "full_size": [16, 16]}, size=12), [PHOTO]), whole[:, :12, :12]
    )


def test_files_and_arrays_of_any_kind(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "a.png")
    Image.fromarray(PHOTO[..., 0]).save(tmp_path / "gray.png")
    rgba = np.concatenate([PHOTO, np.full_like(PHOTO[..., :1], 9)], 2)
    Image.fromarray(rgba).save(tmp_path / "rgba.png")
    three = model(CROP)
    found = preprocess(three, [tmp_path / "a.png", str(tmp_path / "rgba.png"), PHOTO, tmp_path / "gray.png"])
    assert found.shape == (4, 16, 16, 3)
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(preprocess(three, tmp_path / "a.png"), found[:1])
    np.testing.assert_allclose(preprocess(three, PHOTO.astype("float32")), found[:1], atol=1.01)
    assert preprocess(model(CROP, channels=1), [tmp_path / "a.png", PHOTO[..., 0]]).shape == (2, 16, 16, 1)
    five = np.concatenate([PHOTO, PHOTO[..., :2]], 2)
    np.testing.assert_allclose(preprocess(model(CROP, channels=5), five)[..., 3], found[:1, ..., 0], atol=1.01)


def test_bad_images_are_named(tmp_path):
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    for name in ("text.png", "cut.png"):
        with pytest.raises(ValueError, match=f"{name}.*is not a PNG, JPEG"):
            preprocess(model(), [tmp_path / name])
    with pytest.raises(FileNotFoundError, match=r"none.png"):
        preprocess(model(), tmp_path / "none.png")
    with pytest.raises(ValueError, match="input shape"):
        preprocess(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]), [PHOTO])
    with pytest.raises(ValueError, match="an empty list"):
        preprocess(model(), [])
    with pytest.raises(ValueError, match="multiply by 255"):
        preprocess(model(), [PHOTO / 255])
    with pytest.raises(ValueError, match="must have the shape that the model takes"):
        preprocess(model(), [PHOTO[..., :2]])
    with pytest.raises(ValueError, match="1 or 3 channels"):
        preprocess(model(channels=5), ["a.png"])
    with pytest.raises(ValueError, match=r"array of shape \(0, 10, 3\)"):
        preprocess(model(), [np.zeros((0, 10, 3), "uint8")])
    for share in (0, 1.5, None):
        with pytest.raises(ValueError, match=f"crop_pct={share}"):
            preprocess(model({**CROP, "crop_pct": share}), [PHOTO])
    with pytest.raises(ValueError, match="resize='stretch'"):
        preprocess(model({**CROP, "resize": "stretch"}), [PHOTO])


def test_other_things_than_images_are_named():
    wrong = []
    for images, received in [
        (None, "NoneType"),
        (3, "int"),
        ({"a": PHOTO}, "dict"),
        (b"a.png", "bytes"),
        ([None], "NoneType"),
        ([PHOTO, 3.5], "float"),
        ([b"a.png"], "bytes"),
        ([{"a": 1}], "dict"),
        ([[[1, 2], [3]]], "list"),
        (np.float32(3), "an array of shape ()"),
        ([PHOTO[None]], "an array of shape (1, 37, 50, 3)"),
    ]:
        try:
            preprocess(model(), images)
        except TypeError as error:
            wrong += [] if f"Received: {received}" in str(error) else [f"{received}: {error}"]
        else:
            wrong.append(f"{received}: no error")
    assert not wrong


def test_another_thing_than_a_model_is_named():
    for other in [None, "model.keras", PHOTO, keras.layers.Dense(1)]:
        with pytest.raises(TypeError, match=f"`model` must be a Keras model. Received: {type(other).__name__}"):
            preprocess(other, PHOTO)


def test_a_model_of_one_s_own_class_has_no_known_size():
    class Mine(keras.Model):
        pass

    with pytest.raises(ValueError, match="Received: input shape None"):
        preprocess(Mine(), PHOTO)


def test_pillow_s_images_are_taken():
    image = Image.fromarray(PHOTO)
    np.testing.assert_array_equal(preprocess(model(), image), preprocess(model(), PHOTO))
    np.testing.assert_array_equal(
        preprocess(model(), [image.convert("P")]), preprocess(model(), image.convert("P").convert("RGB"))
    )


@pytest.mark.skipif(not os.environ.get("KERAS_VIT_IMAGES"), reason="KERAS_VIT_IMAGES names no folder of photographs")
def test_photographs():
    files = sorted(pathlib.Path(os.environ["KERAS_VIT_IMAGES"]).rglob("*.[jJ][pP]*"))
    found = preprocess(model(CROP, size=64), files[:4])
    assert found.shape == (4, 64, 64, 3) and 20 < found.std() < 120


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_is_what_transformers_does():
    from transformers import ViTImageProcessor

    processor = ViTImageProcessor(size={"height": 16, "width": 16}, do_normalize=False, do_rescale=False)
    theirs = np.asarray(processor(Image.fromarray(PHOTO), return_tensors="np")["pixel_values"])[0].transpose(1, 2, 0)
    np.testing.assert_allclose(preprocess(model({**DIRECT, "antialias": True}), PHOTO)[0], theirs, atol=1.01)


def test_a_rule_of_a_damaged_configuration_is_named():
    assert not unexpected(
        (partial(preprocess, vit("mu/4", image_size=16, depth=1, metadata={"evaluation": rule}), [PHOTO]), pattern)
        for rule, pattern in [
            ({**CROP, "crop_pct": "0.9"}, "crop_pct='0.9'"),
            ({**CROP, "crop_pct": None}, "crop_pct=None"),
            ({**CROP, "interpolation": ["bicubic"]}, "interpolation="),
            ({**DIRECT, "full_size": "384"}, "full_size='384'"),
        ]
    )


def test_what_travels_is_found_in_a_nested_model():
    inside = vit("mu/4", image_size=16, num_classes=2, metadata={"evaluation": CROP, "labels": ["a", "b"]})
    inputs = keras.Input((16, 16, 3))
    outer = keras.Model(inputs, keras.layers.Activation("softmax")(inside(inputs)))
    np.testing.assert_array_equal(preprocess(outer, PHOTO), preprocess(inside, PHOTO))
    assert stated_labels(outer) == stated_labels(inside) == ("a", "b")
    with pytest.warns(
        UserWarning, match=r"names are left out: they are of another head than 'dense.*Received: \['a', 'b'\]"
    ):
        assert stated_labels(keras.Model(inputs, keras.layers.Dense(3)(inside(inputs)))) is None


@pytest.mark.parametrize("interpolation", ["bilinear", "area"])
def test_little_besides_a_large_image_is_in_memory(interpolation, monkeypatch):
    rule = {**DIRECT, "interpolation": interpolation}
    wanted = preprocess(model(rule), PHOTO)
    monkeypatch.setattr("keras_vit.utils.images.STRIP", 200)
    np.testing.assert_allclose(preprocess(model(rule), PHOTO), wanted, atol=1e-5)
    monkeypatch.setattr("keras_vit.utils.images.STRIP", 2**16)
    large = PHOTO.repeat(40, 0).repeat(30, 1)
    assert peak(lambda: preprocess(model(rule), large)) < large.nbytes
