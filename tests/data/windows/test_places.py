import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.windows import opening, places


def test_pixels_of_each_class_are_drawn_evenly():
    """What MONAI#929 proposed: places of classes are found once, and a few of them are kept."""
    mask = np.zeros((2500, 1300), "uint8")
    mask[0:2300:23, 5] = 4  # 100 pixels, in three blocks
    mask[2000:, 1000:] = 9
    values = (0, 4, 7, 9)
    for decoded in (False, True):
        picture = opening.of_array(mask[..., None])._replace(decoded=decoded)
        (regions,), counts = places.in_masks(lambda _, picture=picture: picture, 1, values)
        assert counts.tolist() == [[(mask == value).sum() for value in values]]
        assert [len(each) for each in regions] == [places.KEPT, 100, 0, places.KEPT]
        for value, found in zip(values, regions):
            assert (mask[tuple(found[:, :2].T)] == value).all()
            assert len(np.unique(found, axis=0)) == len(found)
            np.testing.assert_array_equal(found[:, 2:], found[:, :2] + 1)
        rows = regions[0][:, 0]
        assert abs(rows.mean() - 1250) < 150 and np.histogram(rows, 5, (0, 2500))[0].min() > 20  # over all blocks
    (again,), _ = places.in_masks(lambda _: picture, 1, values)
    np.testing.assert_array_equal(np.concatenate(again), np.concatenate(regions))


def test_objects_of_each_class():
    boxes = np.zeros((2, 3, 5), "float32")
    boxes[:, :, 4] = -1
    boxes[0, 0] = (0.1, 0.2, 0.3, 0.4, 1)
    boxes[0, 1] = (0, 0, 1, 1, -3)  # to ignore
    boxes[1, 2] = (0, 0.5, 0.5, 1, 0)
    regions, counts = places.of_boxes(boxes, [(100, 200), (10, 10)], 2)
    assert counts.tolist() == [[0, 1], [1, 0]]
    np.testing.assert_allclose(regions[0][1], [[10, 40, 30, 80]], rtol=1e-5)
    np.testing.assert_allclose(regions[1][0], [[0, 5, 5, 10]])
