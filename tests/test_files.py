import pytest

from keras_vit import files

pytestmark = pytest.mark.backend


def test_what_was_written_takes_the_place(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("old")
    with files.replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("good")

    def fail():
        with files.replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        fail()
    assert path.read_text() == "good" and list(tmp_path.iterdir()) == [path]
