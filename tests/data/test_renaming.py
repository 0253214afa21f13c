import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data import sources
from keras_vit.utils import instance_maps

IMAGES = np.zeros((2, 1, 3, 3), "uint8")


@pytest.mark.parametrize("kind", ["arrays", "files"])
def test_objects_follow_classes_in_another_order(kind):
    maps = np.array([1001, -3, -1, 0, -2, 1999], "int32").reshape(2, 1, 3, 1)
    files = np.array([instance_maps.png(one) for one in maps], object)
    source = sources.Source(IMAGES, {"instance_masks": maps if kind == "arrays" else files}, ("a", "b"), stuff=("b",))
    moved = sources.aligned(source, ("b", "c", "a"))
    found = moved.targets["instance_masks"]
    assert [instance_maps.pixels(item).tolist() for item in found] == [[[1, -2, -1]], [[2000, -4, 999]]]
    assert (
        moved.stuff == ("b",)
        and moved.class_names == ("b", "c", "a")
        and found.shape == source.targets["instance_masks"].shape
    )
    assert len(sources.aligned(source.take([]), ("b", "c", "a"))) == 0
