import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import index as module


def write(path, **changes):
    arrays = {
        "vectors": np.ones((2, 3), "float32"),
        "paths": np.array(["a.png", "b.png"]),
        "left_out": np.zeros((0, 2), "U1"),
        "about": np.array('{"folder": "/photos", "share": [0, 2], "model": "", "fingerprint": "1"}'),
    }
    np.savez(path, **{**arrays, **changes})
    return path


def test_what_is_written_is_read(tmp_path):
    found = keras_vit.load_index(write(tmp_path / "a.npz"))
    assert found.vectors.shape == (2, 3) and found.about["fingerprint"] == "1"
    assert found.file(1).as_posix() == "/photos/b.png"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_file_is_refused(share, tmp_path):
    path = write(tmp_path / "a.npz")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match="a.npz' is not a whole file from `embed_folder`"):
        keras_vit.load_index(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"vectors": np.ones((3, 3), "float32")},
        {"vectors": np.ones((2, 3), "float64")},
        {"vectors": np.array([None, None])},
        {"vectors": np.zeros((2, 3), "float32")},  # whose answers would be in the order of the files
        {"vectors": np.full((2, 3), 1e30, "float32")},  # whose lengths are not finite
        {"vectors": np.full((2, 3), np.nan, "float32")},
        {"vectors": np.ones((0, 3), "float32"), "paths": np.zeros(0, "U1")},
        {"about": np.array("{}")},
        {"about": np.array("no json")},
    ],
)
def test_a_file_of_another_kind_is_refused(changes, tmp_path):
    with pytest.raises(ValueError, match="is not a whole file from `embed_folder`"):
        keras_vit.load_index(write(tmp_path / "a.npz", **changes))


def test_shares_of_different_models_are_refused(tmp_path):
    about = '{"folder": "/photos", "share": [1, 2], "model": "", "fingerprint": "2"}'
    other, mine = write(tmp_path / "b.npz", about=np.array(about)), write(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="Shares must have one model. Received: '.*a.npz' and '.*b.npz'"):
        keras_vit.load_index(mine, other)
    with pytest.raises(ValueError, match="all shares of one folder, each once. Received: shares .0, 2., .0, 2., and 2"):
        keras_vit.load_index(mine, mine)
    with pytest.raises(ValueError, match="At least one file of an index is needed. Received: none"):
        keras_vit.load_index()
    with pytest.raises(FileNotFoundError, match="There is no file '.*c.npz'"):
        keras_vit.load_index(tmp_path / "c.npz")


def test_only_finite_vectors_one_for_each_image_can_be_searched(tmp_path):
    tokens = keras_vit.load_index(write(tmp_path / "a.npz", vectors=np.ones((2, 1, 1, 3), "float32")))
    with pytest.raises(ValueError, match="one vector for each image. Received: patch tokens of shape"):
        module.flat(tokens)
    broken = keras_vit.load_index(write(tmp_path / "b.npz"))._replace(vectors=np.full((2, 3), np.nan, "float32"))
    with pytest.raises(ValueError, match="must be finite. Received: NaN or infinity"):
        module.flat(broken)


def test_arrays_of_other_lengths_are_damage(tmp_path):
    path = tmp_path / "a.npz"
    about = {"folder": "/x", "share": [0, 1], "model": "m", "fingerprint": "f"}
    module.write(path, np.zeros((3, 2), "float32"), ["a", "b", "c"], [], [(1, 2)] * 3, about)
    module.check_lengths(path, module.stored(path, ("paths", "about", module.STAMPS)))
    module.write(path, np.zeros((2, 2), "float32"), ["a", "b", "c"], [], [(1, 2)] * 3, about)
    with pytest.raises(ValueError, match="a.npz' is not a whole file .*: it has 2 vectors, 3 paths and 3 stamps"):
        module.check_lengths(path, module.stored(path, ("paths", "about", module.STAMPS)))
