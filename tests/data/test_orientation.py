import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.orientation import orientations, orientations_in_graph  # noqa: E402
from keras_vit.data.readers.decoding import decode, opened  # noqa: E402
from keras_vit.utils import images  # noqa: E402
from tests import exiffiles, picturefiles  # noqa: E402

FILES = {**exiffiles.every(), **exiffiles.ODD}


def test_orientations_are_found_wherever_files_have_them():
    others = picturefiles.EXACT | picturefiles.JPEGS | {"empty": b"", "riff": b"RIFF", "text": b"no image"}
    wanted = {name: number for name, (_, number) in FILES.items()}
    wanted |= {f"other {name}": 6 if name.startswith("turned") else 1 for name in others}
    items = [data for data, _ in FILES.values()] + [*others.values()]
    for function in (orientations, tf.function(orientations_in_graph)):
        found = dict(zip(wanted, function(tf.constant(items)).numpy(), strict=True))
        if function is not orientations:  # of JPEGs and PNGs
            found = {name: wanted[name] if name.endswith("webp") else number for name, number in found.items()}
        assert {name: number for name, number in found.items() if number != wanted[name]} == {}, function


def test_no_bytes_stop_the_search():
    """Files that a server gets may be anything."""
    rng, items = np.random.default_rng(0), []
    for name in ("6.jpg", "behind.png"):
        for _ in range(150):
            data = bytearray(FILES[name][0])
            for at in rng.integers(0, min(len(data), 120), 6):
                data[at] = rng.integers(256)
            items.append(bytes(data)[: rng.integers(1, len(data))])
    found = tf.function(orientations_in_graph)(tf.constant(items)).numpy()
    assert found.shape == (300,) and set(found) <= set(range(1, 9)) and len(set(found)) > 1


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
