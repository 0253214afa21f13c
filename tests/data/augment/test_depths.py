import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment import depths  # noqa: E402
from keras_vit.utils.depth_maps import depth_file, depth_pixels  # noqa: E402
from tests.depths import folder  # noqa: E402


def test_files_of_every_kind_are_decoded_alike(tmp_path):
    files = sorted((folder(tmp_path / "a") / "depth").iterdir())
    found = depths.inspect_all(files)
    assert {file.suffix for file in files} == {".png", ".npy"}
    for file, one in zip(files, found):
        wanted = depth_pixels(depth_file(file))
        assert one.fault is None and one.size == wanted.shape[::-1] and len(one.digest) == 16
        decoded = depths.decode(tf.constant(file.read_bytes()), tf.constant(wanted.shape))
        np.testing.assert_array_equal(decoded[..., 0], wanted)
        assert (decoded[:3, :3].numpy() == 0).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="size of its image"):
        depths.decode(tf.constant(np.ones((3, 3, 1), "float32")), tf.constant([3, 4]))


def test_faults_are_said(tmp_path):
    np.save(tmp_path / "negative.npy", np.full((2, 3), -1.0))
    np.save(tmp_path / "empty.npy", np.zeros((2, 3)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "empty.npy").read_bytes()[:-4])
    (tmp_path / "text.png").write_text("depth")
    names = ("negative.npy", "empty.npy", "cut.npy", "text.png", "none.npy")
    faults = [one.fault for one in depths.inspect_all([tmp_path / name for name in names])]
    assert "at least 0" in faults[0] and "nothing but holes" in faults[1] and all(faults)
    np.save(tmp_path / "empty.npy", np.ones((2, 3)))  # a file that changes is read again
    assert depths.inspect_all([tmp_path / "empty.npy"])[0].size == (3, 2)


def test_the_inverse_of_a_hole_is_a_hole():
    np.testing.assert_array_equal(depths.inverse(tf.constant([0.0, 4.0])), [0, 0.25])
