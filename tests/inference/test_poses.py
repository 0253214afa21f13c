import functools
import importlib.util

import keras
import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit import estimate_poses
from keras_vit.inference import poses
from tests.checkpoints.helpers import benchmark
from tests.poses import small

RNG = np.random.default_rng(0)


@functools.cache
def looking_for_red():
    """Returns a model whose one heat map is how red each pixel of its crop is."""
    images = keras.Input((64, 48, 3), name="images")
    scaled = keras.layers.Rescaling(1 / 255, name="rescale")(images)
    head = keras.layers.Conv2D(1, 1, use_bias=False, name="head")
    model = keras.Model(images, head(scaled))
    head.kernel.assign(np.array([1.0, -0.5, -0.5]).reshape(1, 1, 3, 1))
    head.gives = "heatmaps"
    return model


def spot(x, y, size=(120, 160)):
    """Returns an image with a red spot at a place."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    light = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 4.0**2))
    return np.stack([255 * light, 0 * light, 0 * light], -1).astype("uint8")


@pytest.mark.parametrize("refine, close", [("dark", 0.5), ("quarter", 1.2), (None, 2.0)])
def test_a_spot_is_found_where_it_is(refine, close):
    """Through crops of several places, shapes and sizes, and beyond the image's edge."""
    for x, y, box in ((70, 50, (40, 20, 60, 60)), (12, 100, (-20, 60, 50, 80)), (150, 30, (120, 0, 39, 100))):
        (found,) = estimate_poses(looking_for_red(), spot(x, y), [box], refine=refine)
        assert np.hypot(found["keypoints"][0] - x, found["keypoints"][1] - y) < close, box
        assert found["keypoints"][2] == found["score"] > 0.5 and found["bbox"] == [float(side) for side in box]


def test_what_is_nowhere_has_no_place():
    (found,) = estimate_poses(looking_for_red(), np.zeros((50, 40, 3), "uint8"), [(5, 5, 20, 30)])
    assert found["keypoints"] == [0.0, 0.0, 0.0]


def test_images_of_any_kind_and_entries_of_a_detector(tmp_path):
    image = RNG.integers(0, 256, (40, 50, 3), "uint8")
    Image.fromarray(image).save(tmp_path / "a.png")
    boxes = [(5, 5, 20, 30), (0, 0, 50, 40), (30, 10, 40, 20)]
    wanted = estimate_poses(small(), image, boxes)
    assert [len(pose["keypoints"]) for pose in wanted] == [51] * 3
    entries = [{"bbox": list(box), "category": "person", "score": 0.9} for box in boxes]
    for given in (tmp_path / "a.png", Image.fromarray(image), image.astype("float32")):
        assert estimate_poses(small(), given, entries) == wanted
    assert estimate_poses(small(), image, []) == []
    many = estimate_poses(small(), image, boxes * 15)  # in batches
    np.testing.assert_allclose(many[44]["keypoints"], wanted[2]["keypoints"], atol=1e-3)


def test_refused():
    image = np.zeros((40, 50, 3), "uint8")
    for box in ((60, 0, 5, 5), (0, 45, 5, 5), (-9, 3, 9, 5), (3, 3, 0, 5), (3, 3, 5, -1)):
        with pytest.raises(ValueError, match="an area inside the image of 50 x 40 pixels. Received: "):
            estimate_poses(small(), image, [(1, 1, 5, 5), box])
    for boxes in ([(1, 2, 3)], [(1, 2, 3, np.nan)], [{"score": 1}], ["box"]):
        with pytest.raises(ValueError, match="must be 4 finite numbers each"):
            estimate_poses(small(), image, boxes)
    with pytest.raises(ValueError, match="must return heat maps of keypoints"):
        estimate_poses(keras_vit.vit("mu/4", image_size=8, num_classes=3), image, [(1, 1, 5, 5)])
    with pytest.raises(ValueError, match="one image, .height, width, channels."):
        estimate_poses(small(), image[None], [(1, 1, 5, 5)])


def weighted_by_column(names):
    """Returns a model whose heat maps are its pixels' first channels, times 1 + the number of the column."""
    images = keras.Input((3, 4, 3), name="images")
    columns = np.arange(1, 5, dtype="float32").reshape(1, 1, 4, 1)
    maps = keras.layers.Rescaling(1.0, name="rescale")(images)[..., : len(names)] * columns
    model = keras.Model(images, keras.layers.Identity(name="head")(maps))
    model.get_layer("head").gives = "heatmaps"
    return model


def test_flip_test_averages_with_the_mirrored_crop():
    """By hand: a pixel p of column c has the map (c + 1) p, and in the mirrored crop, at 3 - c, the map (4 - c) p.

    So their mean is 2.5 p: of a middle keypoint's own channel, of a left one's half of each channel.
    """
    crops = RNG.uniform(0, 255, (2, 3, 4, 3)).astype("float32")
    column = np.arange(4.0).reshape(1, 1, 4)
    plain = poses._maps(weighted_by_column("abc"), crops, None)
    np.testing.assert_allclose(plain, crops * (column + 1)[..., None], rtol=1e-6)
    found = poses._maps(weighted_by_column("abc"), crops, (0, 2, 1))
    np.testing.assert_allclose(found[..., 0], 2.5 * crops[..., 0], rtol=1e-6)
    left = ((column + 1) * crops[..., 1] + (4 - column) * crops[..., 2]) / 2
    np.testing.assert_allclose(found[..., 1], left, rtol=1e-6)
    assert np.abs(found - plain).max() > 1


@pytest.mark.parametrize("refine, close", [("dark", 0.5), ("quarter", 1.2), (None, 2.0)])
def test_flip_test_finds_a_spot_where_it_is(refine, close, monkeypatch):
    """Nothing is shifted: coordinates are unbiased (reports DarkPose 23, HRNet 22 and 192)."""
    monkeypatch.setattr(poses, "mirrored", lambda model: (0,))
    for x, y, box in ((70, 50, (40, 20, 60, 60)), (12, 100, (-20, 60, 50, 80))):
        (plain,) = estimate_poses(looking_for_red(), spot(x, y), [box], refine=refine)
        (found,) = estimate_poses(looking_for_red(), spot(x, y), [box], refine=refine, flip_test=True)
        assert np.hypot(found["keypoints"][0] - x, found["keypoints"][1] - y) < close, box
        np.testing.assert_allclose(found["keypoints"], plain["keypoints"], atol=1e-3)


def test_flip_test_of_a_mirrored_image_is_the_mirrored_pose():
    """Left and right swap: report pytorch_stacked_hourglass 43."""
    model, (height, width) = small(), (40, 50)
    image = RNG.integers(0, 256, (height, width, 3), "uint8")
    ours, theirs = (
        np.reshape(estimate_poses(model, pixels, [box], refine=None, flip_test=True)[0]["keypoints"], (17, 3))
        for pixels, box in ((image, (5, 5, 20, 30)), (image[:, ::-1], (width - 1 - 25, 5, 20, 30)))
    )
    theirs = theirs[[0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15]]
    np.testing.assert_allclose(ours[:, 2], theirs[:, 2], atol=1e-5)
    seen = ours[:, 2] > 0
    np.testing.assert_allclose(ours[seen, 0], width - 1 - theirs[seen, 0], atol=1e-3)
    np.testing.assert_allclose(ours[seen, 1], theirs[seen, 1], atol=1e-3)
    with pytest.raises(ValueError, match="Received: flip_test='heatmap'"):
        estimate_poses(model, image, [(5, 5, 20, 30)], flip_test="heatmap")
    with pytest.raises(ValueError, match="needs the names of keypoints"):
        estimate_poses(small(keypoints=3), image, [(5, 5, 20, 30)], flip_test=True)


def test_a_crop_costs_the_same_in_an_image_of_any_size():
    image = np.broadcast_to(np.uint8(7), (60_000, 60_000, 3))  # as many pixels as 43 GB as numbers of 8 bytes would be
    for area in ((100.0, 200.0, 60.0, 80.0), (-50.0, -50.0, 60_100.0, 60_100.0)):
        assert poses._crop(image, area, (64, 48)).max() == 7
    small = RNG.integers(0, 256, (40, 50, 3), "uint8")
    for area in ((-20.0, -5.0, 90.0, 30.0), (45.0, 38.0, 0.5, 8.0), (1.0, 1.0, 1.0, 1.0)):
        rows, columns = (
            np.maximum(1 - np.abs(places[:, None] - np.arange(have)), 0)
            * ((places >= 0) & (places <= have - 1))[:, None]
            for places, have in (
                (area[1] + np.linspace(0, 1, 64) * area[3], 40),
                (area[0] + np.linspace(0, 1, 48) * area[2], 50),
            )
        )
        wanted = np.floor(np.einsum("tr,uc,rcx->tux", rows, columns, small) + 0.5)
        np.testing.assert_allclose(poses._crop(small, area, (64, 48)), wanted, atol=1)


def test_equals_transformers():
    """Crops within a rounding of bytes, keypoints of the same heat maps exactly."""
    torch = pytest.importorskip("torch")
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    benchmark("timm_alone").import_timm()
    from transformers.models.vitpose.image_processing_pil_vitpose import VitPoseImageProcessorPil

    theirs = VitPoseImageProcessorPil(do_normalize=False, do_rescale=False)
    image = RNG.integers(0, 256, (90, 120, 3), "uint8")
    boxes = [[10.0, 5.0, 40.0, 60.0], [-10.0, 40.0, 90.0, 30.0], [60.5, 20.25, 33.3, 80.0]]
    wanted = np.asarray(theirs(Image.fromarray(image), boxes=[boxes], return_tensors="np")["pixel_values"])
    areas = [poses._area(box, 192 / 256) for box in boxes]
    for area, crop in zip(areas, wanted):
        found = poses._crop(image, area, (256, 192))
        assert np.abs(found - crop.transpose(1, 2, 0)).max() <= 1
        assert np.abs(found - crop.transpose(1, 2, 0)).mean() < 0.01
    maps = RNG.uniform(0, 0.2, (3, 64, 48, 17)).astype("float32")
    for i, (row, column) in enumerate(RNG.integers(4, 40, (17, 2))):
        maps[:, row : row + 3, column : column + 3, i] += np.array([[0.2, 0.5, 0.3], [0.4, 1, 0.7], [0.1, 0.3, 0.2]])
    out = type("Out", (), {"heatmaps": torch.tensor(maps.transpose(0, 3, 1, 2).copy())})
    for box, area, each, one in zip(boxes, areas, maps, theirs.post_process_pose_estimation(out, [boxes])[0]):
        found = np.reshape(poses._entry(np.array(box), area, each, "dark")["keypoints"], (17, 3))
        np.testing.assert_allclose(found[:, :2], one["keypoints"].numpy(), atol=0.01)
        np.testing.assert_allclose(found[:, 2], one["scores"].numpy(), atol=1e-6)
