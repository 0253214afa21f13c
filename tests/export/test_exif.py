import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.export.exif import orientations  # noqa: E402
from tests import exiffiles  # noqa: E402


def test_orientations_are_found_wherever_files_have_them():
    items, numbers = exiffiles.all_kinds()
    found = tf.function(orientations)(tf.constant([*items.values()])).numpy()
    plain = {name: number for name, number in numbers.items() if not name.endswith("webp")}
    assert {name: number for name, number in zip(items, found.tolist(), strict=True) if name in plain} == plain


def test_no_bytes_stop_the_search():
    """Files that a server gets may be anything."""
    rng, items = np.random.default_rng(0), []
    files = {**exiffiles.every(), **exiffiles.ODD}
    for name in ("6.jpg", "behind.png"):
        for _ in range(150):
            data = bytearray(files[name][0])
            for at in rng.integers(0, min(len(data), 120), 6):
                data[at] = rng.integers(256)
            items.append(bytes(data)[: rng.integers(1, len(data))])
    found = tf.function(orientations)(tf.constant(items)).numpy()
    assert found.shape == (300,) and set(found) <= set(range(1, 9)) and len(set(found)) > 1
