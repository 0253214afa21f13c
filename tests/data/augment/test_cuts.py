import functools
from types import SimpleNamespace

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.config import Augment, Data  # noqa: E402
from keras_vit.data.augment import crops, cuts  # noqa: E402
from keras_vit.preparing.preprocessing import data_resize  # noqa: E402

SHAPE = (90, 120)  # of the image


@functools.cache
def drawn(crop, size=(60, 60, 3), count=400, **settings):
    """Many cuts of one image: each field with one row per cut."""
    settings = Augment(crop=crop, **settings)
    numbers = tf.constant(np.random.default_rng(1).random((count, 4)), "float32")

    def draw(numbers):
        cut = cuts.draw_cut(tf.constant(SHAPE), size, settings, numbers)
        return {name: value for name, value in cut._asdict().items() if value is not None}

    found = tf.data.Dataset.from_tensor_slices(numbers).map(draw).batch(count).get_single_element()
    return {name: np.stack(value, -1) if isinstance(value, tuple) else value.numpy() for name, value in found.items()}


def test_inception_boxes_have_the_papers_areas_and_ratios():
    cut = drawn("inception")
    (top, left), (height, width) = cut["start"].T, cut["extent"].T
    assert top.min() >= 0 and left.min() >= 0 and (top + height).max() <= 90 and (left + width).max() <= 120
    area, ratio = height * width / (90 * 120), width / height
    assert area.min() > 0.05 - 0.01 and area.max() <= 1 and ratio.min() > 0.70 and ratio.max() < 1.40
    assert area.min() < 0.1 and area.max() > 0.9 and 0.2 < np.median(area) < 0.5  # of the height, not the area, uniform
    assert np.mean(ratio < 0.85) > 0.1 and np.mean(ratio > 1.2) > 0.1
    middle = np.stack([(top + height / 2) / 90, (left + width / 2) / 120])
    assert np.abs(middle.mean(axis=1) - 0.5).max() < 0.03
    assert (middle.min(axis=1) < 0.25).all() and (middle.max(axis=1) > 0.75).all()
    larger = drawn("inception", crop_area=0.5)["extent"]
    assert (larger.prod(axis=1) / (90 * 120)).min() > 0.48


def test_without_a_crop_the_whole_image_is_seen():
    for cut in (cuts.draw_cut(SHAPE, (60, 40, 3), Augment(), None), cuts.center_cut(SHAPE, (60, 40, 3), Data())):
        assert cut == cuts.Cut(SHAPE, (0, 0), SHAPE, (60, 40))


def test_a_padded_image_is_at_the_top_left_of_a_square():
    cut = cuts.center_cut(tf.constant(SHAPE), (60, 40, 3), Data(resize="pad"))
    assert cut.padded and cut.start == (0, 0) and cut.extent.numpy().tolist() == [120, 120] and cut.grid == (60, 40)


@pytest.mark.parametrize("crop", ["inception", "window"])
def test_half_of_the_cuts_are_flipped_if_asked(crop):
    flipped = drawn(crop, flip=True)["flip"]
    assert abs(flipped.sum() - 200) < 5 * 10
    assert "flip" not in drawn(crop)


def test_windows_are_as_large_as_the_model_or_larger_by_a_factor_and_lie_everywhere():
    cut = drawn("window", size=(30, 40, 3))
    assert (cut["extent"] == (30, 40)).all() and (cut["grid"] == (30, 40)).all()
    top, left = cut["start"].T
    assert set(top) == set(range(61)) and left.min() == 0 and left.max() == 80
    cut = drawn("window", size=(30, 40, 3), crop_shrink=5.0)
    height, width = cut["extent"].T
    assert height.min() == 30 and height.max() == 90 and width.max() == 120  # no larger than the image
    assert ((cut["start"] >= 0) & (cut["start"] + cut["extent"] <= SHAPE)).all()
    smaller = drawn("window", size=(180, 180, 3))
    assert (smaller["extent"] == 90).all() and (smaller["start"][:, 0] == 0).all()


def test_evaluation_sees_the_center_as_it_is():
    cut = cuts.center_cut(tf.constant(SHAPE), (31, 40, 3), Data(resize="window"))
    assert [np.asarray(part).tolist() for part in cut[1:4]] == [[29, 40], [31, 40], [31, 40]]  # as `preprocess`
    cut = cuts.center_cut(tf.constant(SHAPE), (180, 180, 3), Data(resize="window"))
    assert np.asarray(cut.extent).tolist() == [90, 90]


@pytest.mark.parametrize("size", [(24, 24), (24, 36), (36, 24)])
@pytest.mark.parametrize(
    "entries",
    [
        {"resize": "crop", "crop_pct": 0.9},
        {"resize": "crop", "crop_pct": 0.875, "crop_offset": "floor"},
        {"resize": "squash", "crop_pct": 24 / 31},  # 7 are left, of a square
        {"resize": "squash", "crop_pct": 24 / 31, "crop_offset": "floor"},
        {"resize": "aspect"},
        {"resize": "window"},
    ],
)
def test_the_center_is_where_preprocess_cuts_it(size, entries):
    rule = {"interpolation": "bilinear", "antialias": True, "crop_offset": "round", **entries}
    model = keras_vit.vit("mu/4", patch_size=12, image_size=size, num_classes=2, metadata={"evaluation": rule})
    names = {"method": "bilinear", "antialias": True, "crop_offset": rule["crop_offset"]}
    data = SimpleNamespace(resize=data_resize(size, rule), **names)
    for shape in ((40, 53), (64, 43), (33, 33), (47, 30)):
        photograph = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype("uint8")
        cut = crops.evaluation_image(photograph, (*size, 3), data)
        np.testing.assert_allclose(cut, keras_vit.preprocess(model, photograph)[0], atol=2)
