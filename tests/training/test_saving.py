import zipfile
from types import SimpleNamespace

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.tasks import Classify, Pretrain
from keras_vit.training import saving
from tests.training.small import RECIPE, tiny


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A model and its file."""
    model, file = tiny(), tmp_path_factory.mktemp("kept") / "best.keras"
    saving.save_trained(model, model, file)
    return model, file


def test_a_failed_write_leaves_nothing(kept, tmp_path, monkeypatch):
    model, _ = kept

    class Failing:
        def save(self, path):
            path.with_name(path.name + ".left").write_text("half")
            raise OSError("disk")

    monkeypatch.setattr(saving.finetuning, "plain_copy", lambda model, values: Failing())
    with pytest.raises(OSError, match="disk"):
        saving.save_trained(model, model, tmp_path / "best.keras")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", ["cut", "empty", "flipped", "link"])
def test_a_damaged_model_is_written_again_at_the_end(kind, kept, tmp_path):
    model, file = kept
    path, good = tmp_path / "model.keras", file.read_bytes()
    place = SimpleNamespace(writes=True, processes=1, agree=lambda values: values)
    run = SimpleNamespace(folder=tmp_path, place=place, model=model, task=Classify(), own_variables=list, recipe=RECIPE)
    if kind == "link":
        path.symlink_to("/dev/zero")  # to be read for ever
        with pytest.raises(ValueError, match="model.keras' must be a regular file"):
            saving.save_final(run)
        return
    at = len(good) // 2
    path.write_bytes(
        {"cut": good[:at], "empty": b"", "flipped": good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]}[kind]
    )
    saving.save_final(run)
    keras.models.load_model(path, compile=False)


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
            (tmp_path / name).unlink(missing_ok=True) if missing else zipfile.ZipFile(tmp_path / name, "w").close()
        run = SimpleNamespace(folder=tmp_path, place=place, own_variables=lambda decoder=decoder: decoder)
        run.model, run.learner = models.values()
        run.recipe = RECIPE
        run.task = Pretrain()
        assert saving.save_final(run) is run.model
        wanted = ["model.keras", "learner.keras"][: 1 + len(decoder)] if missing else []
        assert written == [(name, writes) for name in wanted]
        written.clear()
        run.task = Classify()  # shows the outputs of the model
        saving.save_final(run)
        assert written == [(name, writes) for name in wanted[:1]]
        written.clear()


def test_with_patience_the_best_model_is_kept_and_returned(kept, tmp_path):
    model, _ = kept
    best = keras.models.clone_model(model)  # with other weights
    best.save(tmp_path / "best.keras")
    recipe = config.override(RECIPE, {"optim.patience": 3})
    place = SimpleNamespace(writes=True, processes=1, agree=lambda values: values)
    run = SimpleNamespace(folder=tmp_path, place=place, model=model, task=Classify(), own_variables=list, recipe=recipe)
    run.best = 0.5
    for found in (saving.save_final(run), keras.models.load_model(tmp_path / "model.keras")):
        assert all((a == b).all() for a, b in zip(found.get_weights(), best.get_weights(), strict=True))
    run.best = None  # no epoch had a score
    assert saving.save_final(run) is model
