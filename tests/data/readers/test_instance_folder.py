"""Which layout a folder of objects has; each is tested with its reader."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Data  # noqa: E402
from keras_vit.data import inspection, sources  # noqa: E402
from keras_vit.data.readers import instance_folder  # noqa: E402
from keras_vit.utils import instance_maps  # noqa: E402
from tests.data.readers import test_coco_masks as coco  # noqa: E402
from tests.data.readers import test_numbered_masks as numbered  # noqa: E402
from tests.data.readers import test_panoptic_folder as panoptic  # noqa: E402
from tests.data.readers import test_yolo_labels as yolo  # noqa: E402

WRITE = {
    "coco": lambda folder: coco.write(folder, [coco.annotation(coco.SQUARE)], ("a.png", "b.png")),
    "panoptic": panoptic.write,
    "numbered": numbered.write,
    "yolo": lambda folder: yolo.dataset(folder, {"a": f"0 {yolo.SQUARE}", "b": ""}),
}
NAMES = {"coco": ("cat", "dog"), "panoptic": ("person", "dog", "sky"), "numbered": (), "yolo": ("cat", "dog")}


def load(folder, split="all", targets=("instance_masks",)):
    return sources.load(Data(source=f"folder:{folder}"), split, targets)


@pytest.mark.parametrize("kind", WRITE)
def test_a_folder_is_known_by_what_is_in_it(kind, tmp_path):
    source = load(WRITE[kind](tmp_path), "train" if kind == "yolo" else "all")
    assert source.class_names == NAMES[kind] and source.stuff == (("sky",) if kind == "panoptic" else ())
    assert instance_folder.has_objects(tmp_path) == (kind != "yolo")
    held = source.targets["instance_masks"]
    assert len(source) == 2 and source.files and len(source.digests) == 2 and source.digests.shape[1] == 32
    decoded = source.reader()(tf.range(2))["instance_masks"]
    assert decoded.dtype == tf.string and [item.numpy() for item in decoded] == list(held)
    assert sorted((instance_maps.pixels(item) == -1).all() for item in held) == [False, True]
    with inspection.named(source):  # images and nothing else are files
        assert sorted(source.paths) == sorted(source.images)


@pytest.mark.parametrize("kind", ["coco", "panoptic", "numbered"])
def test_splits_are_folders_or_parts(kind, tmp_path):
    WRITE[kind](tmp_path / "train")
    assert len(load(tmp_path, "train")) == 2 and len(load(tmp_path, "train[:50%]")) == 1
    halves = load(tmp_path, "train[:50%]").fingerprint(), load(tmp_path, "train[50%:]").fingerprint()
    assert halves[0] != halves[1]


def test_classes_come_before_numbers_of_one_class(tmp_path):
    """A file of COCO names classes; masks beside it may be of anything."""
    coco.write(tmp_path, [coco.annotation(coco.SQUARE)])
    numbered.png(tmp_path / "masks" / "a.png", np.full(coco.SIZE, 1, "uint8"))
    assert load(tmp_path).class_names == ("cat", "dog")


def test_labels_are_not_read_with_objects(tmp_path):
    with pytest.raises(ValueError, match="has no labels"):
        load(numbered.write(tmp_path), targets=("labels", "instance_masks"))


def test_other_sources_have_no_instance_masks():
    with pytest.raises(ValueError, match="'digits' has no instance masks. It has: images, labels"):
        sources.load(Data(source="digits"), "all", ("instance_masks",))


def test_tensorflow_datasets_have_no_instance_masks():
    tfds = pytest.importorskip("tensorflow_datasets")
    from keras_vit.data.readers.tfds import feature_keys

    features = tfds.features.FeaturesDict(
        {"image": tfds.features.Image(), "mask": tfds.features.Image(shape=(None, None, 1))}
    )
    with pytest.raises(ValueError, match="'coco' has no instance masks. It has: image, mask"):
        feature_keys(features, "coco", ("instance_masks",))
