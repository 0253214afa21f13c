import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data import sources
from keras_vit.data.readers import arrays as made


def test_arrays_are_checked():
    images = np.zeros((3, 4, 4, 1), "uint8")
    read = lambda *arrays, targets=("labels",): made.from_arrays(arrays, targets, (4, 4, 1), tuple("abc"))  # noqa: E731
    source = read(images, [0, 1, 2])
    assert source.class_names == tuple("abc") and source.labels.dtype == np.int32 and len(source) == 3
    assert read(images, np.eye(3)).labels.tolist() == [0, 1, 2]  # one-hot
    masks = read(images, images[..., 0], targets=("segmentation_masks",))
    assert masks.targets["segmentation_masks"].shape == (3, 4, 4, 1) and masks.mask_values == {0: "mask 0"}
    assert not read(images, targets=()).targets and not made.from_arrays(images, (), (4, 4, 1)).targets
    for arrays, message in (
        ((images, [0, 1, 3]), "1 outside"),
        ((np.zeros((3, 8, 8, 1)), [0, 1, 2]), r"shape=\(3, 8, 8, 1\)"),
        ((images, [0, 1]), "Received: 3 images and 2 labels"),
        ((images, [[1, 1, 0], [0, 0, 1], [0, 1, 0]]), r"are for Classify\(multilabel=True\). Received: 2 labels of an"),
        ((images,), r"must be a pair \(images, labels\). Received: tuple of 1"),
    ):
        with pytest.raises(ValueError, match=message):
            read(*arrays)
    for wrong, message in ((images[:2], r"\(2, 4, 4, 1\)"), (images / 2, "float64"), (images + 256.0 > 0, "bool"),
                           (images.astype(int) + 256, "0 to 255. Received: 256 to 256")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            read(images, wrong, targets=("segmentation_masks",))
    with pytest.raises(ValueError, match="must be images. Received: tuple of 2"):
        made.from_arrays((images, images), (), (4, 4, 1))
    assert sources.from_arrays is made.from_arrays


def test_pictures_of_zeros_and_ones_are_told():
    binary = np.random.default_rng(0).integers(0, 2, (4, 8, 8, 3)).astype("uint8")
    with pytest.raises(ValueError, match="zeros and ones alone.*multiply by 255"):
        made.from_arrays((binary, np.arange(4) % 2), ("labels",), (8, 8, 3), ("a", "b"))


def test_names_in_arrays():
    images = np.zeros((3, 4, 4, 1), "uint8")
    assert made.names_in((images, ["b", "a", "b"]), ("labels",)) == ("a", "b")
    assert made.names_in((images, np.array(["10", "9", "9"])), ("labels",)) == ("9", "10")
    assert made.names_in((images, [0, 1, 1]), ("labels",)) == () == made.names_in(images, ())
    several = [["b"], [], ["a", "c"]]
    assert made.names_in((images, several), ("multilabels",)) == ("a", "b", "c")
    found = made.from_arrays((images, several), ("multilabels",), (4, 4, 1), ("a", "b", "c"))
    assert found.targets["multilabels"].tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 1]]
    with pytest.raises(ValueError, match="Received: 'c' in example 2"):
        made.from_arrays((images, several), ("multilabels",), (4, 4, 1), ("a", "b"))
    from keras_vit.config import Classify, Data

    source = sources.of_caller((images, ["b", "a", "b"]), Data(), Classify(), (4, 4, 1))
    assert source.class_names == ("a", "b") and source.labels.tolist() == [1, 0, 1]
