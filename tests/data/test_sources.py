import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.memory import Source


def test_digits_are_split_without_overlap():
    parts = [sources.load(Data(), split) for split in ("all[:70%]", "all[70%:80%]", "all[80%:]")]
    assert [len(part) for part in parts] == [1258, 180, 359]
    assert parts[0].images.shape == (1258, 8, 8, 1) and parts[0].images.dtype == np.uint8
    assert parts[0].images.max() == 255
    everything = np.concatenate([part.images.reshape(-1, 64) for part in parts])
    assert sorted(map(bytes, everything)) == sorted(map(bytes, sources.load(Data(), "all").images))
    again = sources.load(Data(), "all[80%:]")
    np.testing.assert_array_equal(again.images, parts[2].images)


def test_limit():
    assert len(sources.load(Data(limit=16), "all[:70%]")) == 16


@pytest.mark.parametrize(
    "source, split, error, message",
    [
        ("mnist", "all", ValueError, "data.source='mnist'"),
        ("digits:x", "all", ValueError, "data.source='digits:x'"),
        ("digits", "train", ValueError, "Received: 'train'"),
        ("digits", "all[80:]", ValueError, r"Received: 'all\[80:\]'"),
        ("digits", "all[50%:50%]", ValueError, "is empty"),
        ("digits", "all[:150%]", ValueError, "end at 100 % or before"),
        ("folder:/no/such/place", "all", FileNotFoundError, "/no/such/place"),
        ("tfds:mnits", "train", ValueError, "Did you mean 'mnist'"),
        ("my/pictures", "all", ValueError, "data.source='my/pictures'; did you mean 'folder:my/pictures'"),
        ("~pictures", "all", ValueError, "did you mean 'folder:~pictures'"),
        ("/tmp", "all", ValueError, "did you mean 'folder:/tmp'"),
    ],
)
def test_bad_sources_are_refused(source, split, error, message):
    with pytest.raises(error, match=message):
        sources.load(Data(source=source), split)


def test_a_folder_here_is_known_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "cat").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="did you mean 'folder:cat'"):
        sources.load(Data(source="cat"), "all")


def test_splits_have_the_same_classes_and_their_own_fingerprint():
    one, two = (sources.load(Data(), split) for split in ("all[:50%]", "all[50%:]"))
    assert one.fingerprint() == sources.load(Data(), "all[:50%]").fingerprint() != two.fingerprint()
    sources.same_classes(one.class_names, two.class_names)
    with pytest.raises(ValueError, match="'c' only in one of them"):
        sources.same_classes("ab", "abc")
    with pytest.raises(ValueError, match="Received: another order"):
        sources.same_classes("ab", "ba")


def test_channels_that_do_not_fit_the_model_are_refused():
    source = sources.from_arrays((np.zeros((3, 4, 4, 1), "uint8"), [0, 1, 2]), ("labels",), (4, 4, 1), tuple("abc"))
    assert sources.check_channels(source, (8, 8, 1)) is source  # another size is resized, as recipes say
    with pytest.raises(ValueError, match="as many channels as the images, 1. Received: 3 channels"):
        sources.check_channels(source, (4, 4, 3))
    files = sources.Source(np.array(["a.png"] * 3), source.targets, source.class_names, files=True)
    with pytest.raises(ValueError, match="as the images, 1 or 3. Received: 4 channels"):
        sources.check_channels(files, (4, 4, 4))


def test_digits_have_labels_and_nothing_else():
    assert not sources.load(Data(), "all", ()).targets
    assert np.array_equal(sources.load(Data(), "all", (), ("labels",)).labels, sources.load(Data(), "all").labels)
    with pytest.raises(ValueError, match="'digits' has no segmentation masks. It has: images, labels"):
        sources.load(Data(), "all", ("segmentation_masks",))


def test_classes_are_aligned_by_their_names():
    images = np.zeros((2, 4, 4, 1), "uint8")
    boxes = np.float32([[[0, 0, 1, 1, 1], [0, 0, 1, 1, 0]], [[0, 0, 1, 1, 0], [0, 0, 0, 0, -1]]])
    targets = {"labels": np.int32([0, 1]), "multilabels": np.int8([[1, 0], [-1, 1]]), "bounding_boxes": boxes}
    source = Source(images, targets, ("c", "a"))
    found = sources.aligned(source, ("a", "b", "c")).targets
    assert found["labels"].tolist() == [2, 0] and found["labels"].dtype == np.int32
    assert found["multilabels"].tolist() == [[0, 0, 1], [1, 0, -1]]
    assert found["bounding_boxes"][..., 4].tolist() == [[0, 2], [2, -1]]
    unusual = Source(images, {"labels": np.int32([0, -1]), "bounding_boxes": boxes - [0, 0, 0, 0, 2]}, ("c", "a"))
    unusual = sources.aligned(unusual, ("a", "c")).targets  # labels to be named as wrong, and regions to ignore
    assert unusual["labels"].tolist() == [1, -1] and unusual["bounding_boxes"][0, :, 4].tolist() == [-1, -3]
    assert sources.aligned(source, ("a", "b")) is source  # "c" is named by what compares them
    masks = Source(images, {"segmentation_masks": images}, ("c", "a"))
    assert sources.aligned(masks, ("a", "c")) is masks


def test_validation_may_lack_a_class(tmp_path):
    for name in ("train/a", "train/b", "train/c", "val/c", "val/b"):
        (tmp_path / name).mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / name / "1.png")
    train, validation = sources.both(Data(source=f"folder:{tmp_path}", train="train", validation="val"))
    assert train.class_names == validation.class_names == ("a", "b", "c")
    assert validation.labels.tolist() == [1, 2] or validation.labels.tolist() == [2, 1]
