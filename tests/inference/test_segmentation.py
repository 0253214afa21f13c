import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.inference import segmentation
from keras_vit.models import segment_outputs
from keras_vit.traits import Traits
from tests import masks

NAMES = ["cat", "sky", "dog"]


def model(photos=None, **row):
    """Returns a model whose queries are often of something."""
    found = masks.build(metadata={"evaluation": {"antialias": True, **({"photos": photos} if photos else {})}}, **row)
    keras_vit.class_names(found, NAMES)
    return found


def photo(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype("uint8")


@pytest.mark.parametrize(
    "shape, side, longest, size",
    [((33, 52), 40, None, (40, 63)), ((52, 33), 40, None, (63, 40)), ((33, 52), 40, 40, (25, 40)),
     ((3, 11), 40, 40, (11, 39)), ((50, 50), 40, 40, (40, 40)), ((480, 640), 640, 640, (480, 640)),
     ((427, 640), 640, 640, (427, 640)),
     ((375, 500), 640, 640, (480, 640))],
)  # fmt: skip
def test_photos_have_the_size_that_transformers_gives_them(shape, side, longest, size):
    assert segmentation.whole_size(shape, side, longest) == size


@pytest.mark.parametrize("shape, axis, starts", [((20, 31), 1, [0, 8]), ((31, 20), 0, [0, 8]), ((16, 16), 1, [0])])
def test_windows(shape, axis, starts):
    preparation = Traits(model()).preparation
    size, parts, found, along = segmentation.windows(preparation, photo(*shape))
    assert size == shape and found == starts and along == axis and parts.shape == (len(starts), 16, 16, 3)
    if shape == (16, 16):
        np.testing.assert_array_equal(parts[0], photo(16, 16))


def test_what_a_photo_does_not_fill_is_black():
    image, frame = segmentation.padded(Traits(model()).preparation, photo(8, 20) // 2 + 100)
    assert frame == ((16, 16), (6, 16), (8, 20)) and image.dtype == "float32"
    assert (image[6:] == 0).all() and (image[:6] >= 100).all()


@pytest.mark.parametrize("kind", ["semantic", "instance", "panoptic"])
def test_photos_of_any_size(kind, tmp_path):
    network = model("windows" if kind == "semantic" else "padded")
    keras.utils.save_img(tmp_path / "a.png", photo(20, 31))
    options = {"stuff": ["sky"]} if kind == "panoptic" else {}
    photos = [photo(31, 20, 1), tmp_path / "a.png", photo(16, 16)[..., 0]]
    found = keras_vit.segment(network, photos, kind, threshold=0.01, **options)
    assert [each.map.shape for each in found] == [(31, 20), (20, 31), (16, 16)]
    for each in found:
        numbers = [entry["id"] for entry in each.segments]
        assert set(np.unique(each.map)) - {-1} <= set(numbers) and numbers == sorted(set(numbers))
        for entry in each.segments:
            assert entry["label"] == NAMES[entry["class"]] and entry["area"] == (each.map == entry["id"]).sum()
            assert ("score" in entry) == (kind != "semantic")
    assert any(each.segments for each in found)


def test_it_is_the_rule_on_the_model():
    network, picture = model(), photo(12, 16)
    image = np.pad(picture, ((0, 4), (0, 0), (0, 0)))[None].astype("float32")
    logits, shapes = segment_outputs.unpacked(keras.ops.convert_to_numpy(network(image)), 3, (16, 16))
    frame = segment_outputs.Frame((16, 16), (12, 16), (12, 16))
    wanted, segments = segment_outputs.panoptic_map(logits[0], shapes[0], frame, {1}, threshold=0.2)
    (found,) = keras_vit.segment(network, picture, "panoptic", threshold=0.2, stuff=[1])
    np.testing.assert_array_equal(found.map, wanted)
    scores = [[each["score"] for each in entries] for entries in (found.segments, segments)]
    np.testing.assert_allclose(*scores, atol=1e-5)


def test_of_coco_the_stuff_is_known():
    assert segmentation._stuff(None, ("a",) * 133) == set(range(80, 133))
    assert segmentation._stuff(["sky", 0], tuple(NAMES)) == {0, 1} and segmentation._stuff([], ("a",)) == set()


@pytest.mark.parametrize(
    "options, pattern",
    [
        (dict(kind="boxes"), "`kind` must be one of"),
        (dict(kind="semantic", photos="padded"), "`kind` must be 'instance' or 'panoptic'.*Received: kind='semantic'"),
        (dict(kind="instance", photos="windows"), "`kind` must be 'semantic'"),
        (dict(kind="panoptic"), "`stuff` must list the classes without instances.*of 3 classes"),
        (dict(kind="panoptic", stuff=["car"]), "`stuff` must have names of classes, or numbers from 0 to 2.*'car'"),
        (dict(kind="panoptic", stuff=[3]), "Received: 3"),
        (dict(kind="panoptic", stuff="sky"), "`stuff` must be a list or tuple"),
        (dict(kind="instance", threshold=1.5), "`threshold` must be at least 0 and below 1"),
        (dict(kind="instance", shape=(1, 40)), "at most 32 times as long as wide.*an array of 40 x 1 pixels"),
        (dict(kind="semantic", shape=(1, 40)), "at most 32 times as long as wide"),
        (dict(kind="instance", model=keras_vit.vit("mu/4", image_size=8)), "must have a class and a mask for each"),
    ],
)
def test_refused(options, pattern):
    network = options.pop("model", None) or model(options.pop("photos", None))
    with pytest.raises(ValueError, match=pattern):
        keras_vit.segment(network, photo(*options.pop("shape", (8, 8))), **options)


def test_a_model_of_other_than_square_images_is_refused():
    network = masks.build(image_size=(16, 24))
    with pytest.raises(ValueError, match="square images that are not cut. Received: size=.16, 24."):
        keras_vit.segment(network, photo(8, 8), "instance")
