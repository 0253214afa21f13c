from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow")

from keras_vit import files
from keras_vit.tasks import Classify, Pretrain
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


def test_the_last_models_are_written_once(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        saving, "save_trained", lambda learner, model, path, writes: written.append((path.name, writes))
    )
    for writes, missing, decoder in ((True, True, []), (True, True, [1]), (True, False, [1]), (False, True, [1])):
        agree = lambda _, missing=missing: [int(missing)]  # noqa: E731, what the process says that writes
        place = SimpleNamespace(writes=writes, processes=1, agree=agree)
        models = {"model.keras": object(), "learner.keras": object()}
        for name in models:
            (tmp_path / name).unlink(missing_ok=True) if missing else (tmp_path / name).touch()
        run = SimpleNamespace(folder=tmp_path, place=place, own_variables=lambda decoder=decoder: decoder)
        run.model, run.learner = models.values()
        run.task = Pretrain()
        assert saving.save_final(run) is run.model
        wanted = ["model.keras", "learner.keras"][: 1 + len(decoder)] if missing else []
        assert written == [(name, writes) for name in wanted]
        written.clear()
        run.task = Classify()  # shows the outputs of the model
        saving.save_final(run)
        assert written == [(name, writes) for name in wanted[:1]]
        written.clear()
