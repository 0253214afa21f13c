import shutil

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.training import state
from keras_vit.training.devices import ALONE, Place
from keras_vit.training.evaluation import tally_of
from keras_vit.training.loop import Run
from tests.marks import few, slow
from tests.training.small import RECIPE, SOURCE, Break, fit, tiny, what_counts

pytestmark = pytest.mark.compiled


def accuracy(model):
    return tally_of(model.predict_on_batch, RECIPE, SOURCE, (8, 8, 1))[0].result()["accuracy"]


@pytest.mark.parametrize("after", [7, pytest.param(13, marks=slow)])
def test_a_broken_run_ends_where_a_whole_one_does_bit_for_bit(tmp_path, whole, after):
    model, history, folder = whole
    with pytest.raises(SystemError):
        fit(tmp_path, save_steps=2, extra=[Break(after)])
    resumed, found = fit(tmp_path, save_steps=2)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(resumed.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)
    ours, theirs = (state.newest(f)[0] for f in (tmp_path, folder))
    assert (
        ours.keys() == theirs.keys() and any("seed_generator" in k for k in ours) and any("average" in k for k in ours)
    )
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@slow
def test_compiled_by_xla_it_does_too(tmp_path):
    one, history = fit(tmp_path / "one", place=ALONE)
    with pytest.raises(SystemError):
        fit(tmp_path / "two", place=ALONE, save_steps=2, extra=[Break(8)])
    two, found = fit(tmp_path / "two", place=ALONE)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(two.get_weights(), one.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_run_leaves_two_states_the_best_model_and_its_history(whole):
    _, history, folder = whole
    assert sorted(p.name.split("-")[0] for p in folder.iterdir()) == ["best.keras", "history.csv", "state", "state"]
    assert len(history["loss"]) == 3 and set(history) >= {"val_accuracy", "learning_rate", "images_per_second"}
    best = keras.models.load_model(folder / "best.keras")
    assert accuracy(best) == pytest.approx(max(history["val_accuracy"]))
    assert not best.compiled


def test_what_is_returned_is_the_moving_average(whole):
    """The last epoch was measured with it."""
    model, history, folder = whole
    assert accuracy(model) == pytest.approx(history["val_accuracy"][-1])
    arrays = sorted(state.newest(folder)[0].items(), key=lambda item: int(item[0].split("/")[1]))
    raw = {name.split("/", 2)[2]: array for name, array in arrays if name.startswith("model/")}
    averages = [array for name, array in arrays if name.endswith("_average")]
    assert len(averages) == len(model.trainable_variables)
    for variable, average in zip(model.trainable_variables, averages):
        np.testing.assert_array_equal(variable.numpy(), average)
    assert not np.array_equal(raw["block_0/mlp/fc1/kernel"], model.get_layer("block_0").mlp.fc1.kernel.numpy())


def test_a_finished_run_is_not_trained_again(tmp_path, whole):
    model, _, folder = whole
    run = shutil.copytree(folder, tmp_path / "run")
    again, _ = fit(run)
    assert sorted(p.name for p in run.iterdir()) == sorted(p.name for p in folder.iterdir())
    for a, b in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_damaged_state_is_passed_over(tmp_path, whole):
    model, history, folder = whole
    run = shutil.copytree(folder, tmp_path / "run")
    newest = state.newest(run)[2]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    with pytest.warns(UserWarning, match=r"state-0000000015-\w+.safetensors' is damaged.*SHA-256"):
        again, found = fit(run)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)


@few(1)
@pytest.mark.parametrize("settings", [dict(freeze=0), dict(freeze="all"), dict(lora=2)])
def test_what_is_frozen_stays_and_the_rest_learns(tmp_path, settings):
    recipe = config.override(
        RECIPE, {f"optim.{k}": v for k, v in {**settings, "epochs": 1, "warmup_epochs": 0}.items()}
    )
    model = tiny()
    before = {v.path: v.numpy() for v in model.weights}
    fit(tmp_path, recipe, model)
    moved = {v.path.split("/")[0] for v in model.weights if v.path in before and (v.numpy() != before[v.path]).any()}
    expected = {"all": {"head"}, 0: {"block_0", "norm", "head"}, None: {"head"}}[settings.get("freeze")]
    assert moved == expected
    if "lora" in settings:
        best = keras.models.load_model(tmp_path / "best.keras")
        assert {v.path for v in best.weights} == set(before)
        image = SOURCE.images[:4]
        np.testing.assert_allclose(best.predict(image, verbose=0), model.predict(image, verbose=0), atol=1e-5)


@slow
def test_float16_scales_its_loss_and_resumes(tmp_path):
    recipe = config.override(RECIPE, {"optim.epochs": 2})
    _, history = fit(tmp_path / "one", recipe, tiny(dtype="mixed_float16"), save_steps=2)
    with pytest.raises(SystemError):
        fit(tmp_path / "two", recipe, tiny(dtype="mixed_float16"), save_steps=2, extra=[Break(3)])
    _, found = fit(tmp_path / "two", recipe, tiny(dtype="mixed_float16"))
    assert what_counts(found) == what_counts(history)
    assert any("dynamic_scale" in name for name in state.newest(tmp_path / "one")[0])


@slow
def test_muon_with_all_else_resumes_bit_for_bit(tmp_path):
    more = {"optimizer": "muon", "ema": 0.9, "accumulate": 2, "layer_decay": 0.7, "epochs": 2}
    recipe = config.override(RECIPE, {f"optim.{name}": value for name, value in more.items()})
    model, history = fit(tmp_path / "one", recipe, save_steps=2)
    with pytest.raises(SystemError):
        fit(tmp_path / "two", recipe, save_steps=2, extra=[Break(3)])
    again, found = fit(tmp_path / "two", recipe)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_gives_the_rest_of_its_batches(tmp_path):
    run = Run(RECIPE, tiny(), SOURCE, SOURCE, tmp_path, epoch=1, step=2)
    assert run.steps == 5 and run.training_batches().cardinality() == 2 * 5 - 2
    assert run.progress == {"epoch": 1, "step": 2, "history": [], "best": None, "ended": False}


@pytest.mark.parametrize("even, parts", [(False, 2), (True, 3)])
def test_validation_sees_each_image_once(tmp_path, even, parts):
    run = Run(RECIPE, tiny(), SOURCE, SOURCE.take(slice(0, 12)), tmp_path, place=Place(even=even))
    batches = [[part.numpy() for part in batch] for batch in run.validation_batches()]
    assert [len(batch) for batch in batches] == [parts] * 2
    counted = [int((batch[2] > 0).sum()) if even else len(batch[0]) for batch in batches]
    assert counted == [8, 4]
