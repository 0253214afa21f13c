import shutil

import pytest

import keras_vit


def test_a_second_publication_replaces_the_first(run, hub, tmp_path):
    """An export of the model before would answer for the new one."""
    keras_vit.push_to_hub(run, "me/cells")
    first = dict(hub.repositories["me/cells"])
    shutil.copytree(run, tmp_path / "again")
    (tmp_path / "again" / "model.tflite").unlink()
    hub.repositories["me/cells"]["notes.txt"] = b"mine"
    keras_vit.push_to_hub(tmp_path / "again", "me/cells")
    assert {*first} - {*hub.repositories["me/cells"]} == {"model.tflite"}
    assert hub.repositories["me/cells"]["notes.txt"] == b"mine"
    assert keras_vit.load_run("hf://me/cells").class_names


def test_an_edited_card_stays(run, hub):
    keras_vit.push_to_hub(run, "me/cells")
    edited = hub.repositories["me/cells"]["README.md"] + b"Made by hand."
    hub.repositories["me/cells"]["README.md"] = edited
    for _ in range(2):
        with pytest.warns(UserWarning, match="'me/cells' has a README.md that was edited, .*: it stays as it is"):
            keras_vit.push_to_hub(run, "me/cells")
        assert hub.repositories["me/cells"]["README.md"] == edited
    assert keras_vit.load_run("hf://me/cells").class_names


def test_a_card_that_someone_else_wrote_stays(run, hub):
    hub.repositories["me/cells"] = {"README.md": b"---\nlicense: mit\n---\n"}
    with pytest.warns(UserWarning, match="is not of push_to_hub: it stays"):
        keras_vit.push_to_hub(run, "me/cells")
    assert hub.repositories["me/cells"]["README.md"] == b"---\nlicense: mit\n---\n"
