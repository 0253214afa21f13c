import csv
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.training import cross_validation, history, locks
from tests.marks import slow
from tests.small import small

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1)).astype("uint8")
LABELS = np.arange(40) % 10


@slow
def test_a_run_for_each_fold_and_a_table(tmp_path, eagerly, monkeypatch, capsys):
    recipe, fit = config.override(small(), {"data.limit": 40, "data.batch_size": 10}), cross_validation.fit
    calls = []

    def stops_in_the_second(one, folder, **more):
        calls.append((folder.name, more["verbose"]))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(one, folder, **more)

    monkeypatch.setattr(cross_validation, "fit", stops_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        keras_vit.cross_validate(recipe, 2, tmp_path / "folds", verbose=2)
    before = (tmp_path / "folds" / "fold-1" / "model.keras").read_bytes()
    rows = keras_vit.cross_validate(recipe, 2, tmp_path / "folds", verbose=2)
    assert calls[2:] == [("fold-1", 0), ("fold-2", 2)]  # a finished one says nothing
    assert (tmp_path / "folds" / "fold-1" / "model.keras").read_bytes() == before
    assert [row["fold"] for row in rows] == [1, 2, "mean", "deviation"]
    values = [row["val_loss"] for row in rows]
    np.testing.assert_allclose(values[2:], [np.mean(values[:2]), np.std(values[:2], ddof=1)])
    with open(tmp_path / "folds" / "folds.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["val_loss"]) for row in table] == values
    assert "folds/fold-2: " in capsys.readouterr().out

    alone, _ = fit(
        config.override(recipe, {"data.fold": (2, 2)}), tmp_path / "alone", verbose=0
    )  # the same as by itself
    second = keras_vit.load_run(tmp_path / "folds" / "fold-2").model
    assert all(map(np.array_equal, alone.get_weights(), second.get_weights()))
    files = [tmp_path / name / "data.json" for name in ("alone", "folds/fold-2")]
    assert files[0].read_text() == files[1].read_text()
    assert "accuracy" in next(iter(keras_vit.evaluate(tmp_path / "alone").values()))
    with pytest.raises(ValueError, match="another recipe.* data.limit: 40 there, 39 here"):
        keras_vit.cross_validate(config.override(recipe, {"data.limit": 39}), 2, tmp_path / "folds", verbose=0)
    with pytest.raises(ValueError, match="not the directory of a run"):
        keras_vit.cross_validate(recipe, 2, tmp_path / "alone")


@slow
def test_folds_of_arrays(tmp_path, eagerly):
    rows = keras_vit.cross_validate(small(), 2, tmp_path, train=(PIXELS, LABELS), verbose=0)
    assert len(rows) == 4 and 0 <= rows[2]["val_accuracy"] <= 1
    with pytest.raises(ValueError, match="on other data"):
        keras_vit.cross_validate(small(), 2, tmp_path, train=(PIXELS, LABELS[::-1]), verbose=0)


def test_what_cannot_be_cross_validated_is_refused_before_work(tmp_path):
    arrays = PIXELS, LABELS
    for recipe, folds, more, message in (
        (small(), 1, {}, "data.fold must be"),
        (small(), 5, {"train": arrays}, "at most as many folds as the images of '0', 4. Received: 5 folds"),
        (small(), 2, {"validation": arrays}, "`validation` must be given with `train`"),
        (small(), 2, {"train": arrays, "validation": arrays}, "must have no image in common"),
        (
            config.override(small(), {"data.fold": (1, 2)}),
            2,
            {},
            r"must not be that of one. Received: data.fold=\(1, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.cross_validate(recipe, folds, tmp_path / "folds", **more)
    assert not (tmp_path / "folds").exists()


def test_a_score_that_is_nan_or_missing_stays_nan():
    rows = [{"fold": 1, "a": 1.0, "b": np.nan, "d": np.inf}, {"fold": 2, "a": 2.0, "b": 1.0, "c": 3.0, "d": 1.0}]
    found = [cross_validation.summary(rows, of) for of in cross_validation.SUMMARIES.values()]
    nan = np.nan
    np.testing.assert_equal(found[0], {"a": 1.5, "b": nan, "d": np.inf, "c": nan})
    np.testing.assert_equal(found[1], {"a": np.sqrt(0.5), "b": nan, "d": nan, "c": nan})


@pytest.mark.parametrize(("best", "kept"), [(("val_accuracy", "max"), 2), (("val_loss", "min"), 3)])
def test_with_patience_the_scores_are_those_of_the_kept_epoch(tmp_path, best, kept):
    losses, accuracies = [3.0, np.nan, 2.0, 1.0, 4.0], [0.7, 0.9, 0.7, 0.2, np.nan]
    pairs = enumerate(zip(losses, accuracies))
    history.rewrite(tmp_path, [{"epoch": i, "loss": 0.0, "val_loss": a, "val_accuracy": b} for i, (a, b) in pairs])
    for patience, epoch in ((None, 4), (2, kept)):
        recipe = SimpleNamespace(task=SimpleNamespace(best=best), optim=SimpleNamespace(patience=patience))
        found = cross_validation.scores(tmp_path, recipe)
        np.testing.assert_equal(found, {"val_loss": losses[epoch], "val_accuracy": accuracies[epoch]})


def test_files_that_change_between_folds_are_refused(tmp_path, monkeypatch):
    from PIL import Image

    files = [tmp_path / "data" / "ab"[i % 2] / f"{i}.png" for i in range(12)]
    for i, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 10 * i).save(file)
    changes = [lambda: Image.new("L", (8, 8), 200).save(files[3]), files[3].unlink, lambda: None]
    monkeypatch.setattr(cross_validation, "scores", lambda *_: {"val_loss": 1.0})
    options = {"data.source": f"folder:{tmp_path / 'data'}", "data.train": "all[:50%]", "data.validation": "all[50%:]"}
    recipe = config.override(small(), {**options, "data.batch_size": 2, "data.limit": None})
    for number, change in enumerate(changes):
        trained = []

        def fit(one, folder, change=change, trained=trained, **more):
            trained.append(folder.name)
            if len(trained) == 1:
                change()

        monkeypatch.setattr(cross_validation, "fit", fit)
        folder = tmp_path / str(number)
        folder.mkdir()
        if number < 2:
            with pytest.raises(ValueError, match="changed before fold 2 began: all folds must be of the same data"):
                keras_vit.cross_validate(recipe, 2, folder, verbose=0)
            assert trained == ["fold-1"]
        else:
            keras_vit.cross_validate(recipe, 2, folder, verbose=0)
            assert trained == ["fold-1", "fold-2"]


def test_two_processes_do_not_share_the_folds(tmp_path):
    recipe = config.override(small(), {"data.limit": 40})
    for busy in (tmp_path, tmp_path / "fold-1"):
        with locks.locked(busy), pytest.raises(ValueError, match=f"Another process is training in '{busy}'"):
            keras_vit.cross_validate(recipe, 2, tmp_path, verbose=0)
    assert not (tmp_path / "folds.csv").exists()
