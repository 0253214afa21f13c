import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.orientation import orientations  # noqa: E402
from keras_vit.data.readers.decoding import decode, opened  # noqa: E402
from keras_vit.utils import images  # noqa: E402
from tests import exiffiles  # noqa: E402


def test_orientations_are_found_wherever_files_have_them():
    items, numbers = exiffiles.all_kinds()
    found = orientations(tf.constant([*items.values()])).numpy()
    assert dict(zip(items, found.tolist(), strict=True)) == numbers


def test_files_are_decoded_upright_and_boxes_are_cut_out_of_the_upright_image():
    for name, (data, number) in exiffiles.every().items():
        whole = decode(tf.constant(data), 3).numpy()
        if not name.endswith("jpg"):
            np.testing.assert_array_equal(whole, exiffiles.upright(number), name)
        np.testing.assert_array_equal(whole, decode(tf.constant(data), 3, number).numpy(), name)
        shape, box = opened(tf.constant(data), 3)
        cut = box((1, 2), (7, 9)).numpy()
        assert shape.numpy().tolist() == [*whole.shape[:2]] == [*images.image_size(data)] and cut.shape == (7, 9, 3)
        most = 4 if name.endswith("jpg") else 0  # at the box's edge colors have other neighbors
        assert np.abs(cut[1:-1, 1:-1].astype(int) - whole[2:7, 3:10]).max() <= most, name
