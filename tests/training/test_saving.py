from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow")

from keras_vit import files
from keras_vit.training import saving


def test_what_is_not_whole_yet_has_a_name_that_is_swept(whole, tmp_path, monkeypatch):
    model, *_ = whole

    class Killed:
        def save(self, path):
            path.with_name(path.name + ".left").write_text("half")
            raise OSError("killed")

    monkeypatch.setattr(saving.finetuning, "plain_copy", lambda model, values: Killed())
    with pytest.raises(OSError, match="killed"):
        saving.save_trained(model, model, tmp_path / "best.keras")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(files.UNFINISHED)


def test_the_last_model_is_written_once(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(saving, "save_trained", lambda learner, model, path, writes: written.append((path, writes)))
    for writes, missing, wanted in ((True, True, 1), (True, False, 0), (False, True, 1)):  # agreed on with the writer
        place = SimpleNamespace(writes=writes, processes=1, agree=lambda found, missing=missing: [int(missing)])
        (tmp_path / "model.keras").unlink(missing_ok=True) if missing else (tmp_path / "model.keras").touch()
        run = SimpleNamespace(folder=tmp_path, model=object(), place=place)
        assert saving.save_final(run) is run.model
        assert written == [(tmp_path / "model.keras", writes)] * wanted
        written.clear()
