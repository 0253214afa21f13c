import os

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit import vit
from keras_vit.export import prepare
from keras_vit.keras_private import shapes_only


def half_write(path):
    with prepare.destination(path, True) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")


def test_an_existing_path_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="exists"), prepare.destination(path, False):
        pass
    with pytest.raises(OSError, match="disk"):
        half_write(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with prepare.destination(path, True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_what_a_killed_export_left_goes_after_a_day_and_a_running_one_stays(tmp_path):
    with prepare.destination(tmp_path / "running", False) as running:
        running.write_text("half")
        with prepare.destination(tmp_path / "killed", False) as killed:
            killed.write_text("half")
            for path in (killed, killed.parent):
                os.utime(path, (0, 0))
            with prepare.destination(tmp_path / "whole", False) as whole:
                whole.write_text("whole")
            assert running.exists() and not killed.parent.exists()
            killed.parent.mkdir()
            killed.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"running", "killed", "whole"}


def test_a_folder_of_yours_is_never_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match="no SavedModel"), prepare.destination(tmp_path / "mine", True):
        pass
    assert (tmp_path / "mine").exists()


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), prepare.destination(tmp_path / "file" / "inside", False):
        pass


def test_another_backend_is_told(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow.*'jax'"):
        prepare.need_tensorflow_backend("A SavedModel")


@pytest.mark.parametrize(
    "model, said",
    [
        (keras.layers.Dense(3), "Received: Dense"),
        (keras.Sequential([keras.Input((None, None, 3)), keras.layers.GlobalAveragePooling2D()]), "a known size"),
        (keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(2, 3)]), "one vector of logits.*6, 6, 2"),
    ],
)
def test_what_is_no_classifier_of_images_is_named(model, said):
    with pytest.raises(ValueError, match=said):
        prepare.check_model(model)


def test_a_model_that_is_too_large_is_named_before_it_is_built():
    with pytest.raises(ValueError, match=r"less than 2 GB. Received: 'vit_H_14', 2\.5 GB"):
        prepare.check_model(shapes_only(lambda: vit("H/14", num_classes=10)))


def test_labels_are_counted():
    model = vit("mu/4", image_size=8, num_classes=3)
    prepare.check_labels(model, ["a", "b", "c"])
    for labels in (["a"], "abc"):
        with pytest.raises(ValueError, match="names of the 3 classes"):
            prepare.check_labels(model, labels)
