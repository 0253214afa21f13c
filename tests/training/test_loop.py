import os
import signal

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config, files, vit
from keras_vit.data.sources import Source
from keras_vit.training import callbacks, loop, state
from keras_vit.training.devices import ALONE, Place

RNG = np.random.default_rng(0)
SOURCE = Source(
    RNG.integers(0, 256, (40, 8, 8, 1)).astype("uint8"), RNG.integers(0, 3, 40).astype("int32"), tuple("abc")
)
RECIPE = config.Recipe(
    name="x",
    model={},
    data=config.Data(batch_size=8),
    augment=config.Augment(rotation=10.0, translation=0.1, mixup=0.2),
    optim=config.Optim(epochs=3, warmup_epochs=1.0, learning_rate=0.01, weight_decay=0.1, ema=0.9),
)
PLAIN = Place(jit_compile=False)  # compiling takes longer than these trainings


def tiny(**more):
    keras.utils.set_random_seed(0)
    return vit("mu/4", image_size=8, channels=1, num_classes=3, depth=2, **more)


def fit(folder, recipe=RECIPE, model=None, place=PLAIN, **more):
    folder.mkdir(exist_ok=True)
    model = tiny(stochastic_depth=0.3, dropout=0.1) if model is None else model
    return model, loop.fit(model, recipe, SOURCE, SOURCE, folder, verbose=0, place=place, **more)


def what_counts(history):
    return {k: v for k, v in history.items() if k not in ("images_per_second", "minutes_left")}


class Break(keras.callbacks.Callback):
    """Raises after so many batches."""

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            raise SystemError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    model, history = fit(folder)
    return model, history, folder


@pytest.mark.parametrize("after", [7, 13])
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
    assert loop.evaluate(best, RECIPE, SOURCE)["accuracy"] == pytest.approx(max(history["val_accuracy"]))
    assert not best.compiled


def test_what_is_returned_is_the_moving_average(whole):
    """The last epoch was measured with it."""
    model, history, folder = whole
    assert loop.evaluate(model, RECIPE, SOURCE)["accuracy"] == pytest.approx(history["val_accuracy"][-1])
    arrays = sorted(state.newest(folder)[0].items(), key=lambda item: int(item[0].split("/")[1]))
    raw = {name.split("/", 2)[2]: array for name, array in arrays if name.startswith("model/")}
    averages = [array for name, array in arrays if name.endswith("_average")]
    assert len(averages) == len(model.trainable_variables)
    for variable, average in zip(model.trainable_variables, averages):
        np.testing.assert_array_equal(variable.numpy(), average)
    assert not np.array_equal(raw["block_0/mlp/fc1/kernel"], model.get_layer("block_0").mlp.fc1.kernel.numpy())


def test_what_is_not_whole_yet_has_a_name_that_is_swept(whole, tmp_path, monkeypatch):
    model, *_ = whole

    class Killed:
        def save(self, path):
            path.with_name(path.name + ".left").write_text("half")
            raise OSError("killed")

    monkeypatch.setattr(loop.finetuning, "plain_copy", lambda model, values: Killed())
    with pytest.raises(OSError, match="killed"):
        loop.save_trained(model, model, tmp_path / "best.keras")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(files.UNFINISHED)


def test_a_finished_run_is_not_trained_again(tmp_path):
    recipe = config.override(RECIPE, {"optim.epochs": 1})
    model, _ = fit(tmp_path, recipe)
    before = sorted(p.name for p in tmp_path.iterdir())
    again, _ = fit(tmp_path, recipe)
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    for a, b in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_damaged_state_is_passed_over(tmp_path):
    model, history = fit(tmp_path)
    newest = state.newest(tmp_path)[2]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    with pytest.warns(UserWarning, match=r"state-0000000015-\w+.safetensors' is damaged.*SHA-256"):
        again, found = fit(tmp_path)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("where", ["average", "loss"])
def test_infinite_numbers_stop_the_run_and_the_good_state_stays(tmp_path, where):
    class Poison(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1 and where == "loss":
                self.model.get_layer("head").bias.assign([np.nan] * 3)

        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == 6 and where == "average":
                average = self.model.optimizer._model_variables_moving_average[-1]
                average.assign(np.full(average.shape, np.inf))

    with pytest.raises(
        RuntimeError, match=r"epoch 2, step \d, at a learning rate of 0.0.*state-0000000005-\w+.safetensors"
    ):
        fit(tmp_path, extra=[Poison()], save_steps=3 if where == "average" else None)
    assert all(np.isfinite(array).all() for array in state.newest(tmp_path)[0].values())


@pytest.mark.parametrize("at, step", [(6, "epoch 1, step 2 of 5"), (9, "epoch 2, step 0 of 5")])
def test_ctrl_c_saves_and_leaves(tmp_path, whole, at, step):
    class Ask(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == at:
                os.kill(os.getpid(), signal.SIGTERM)

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(callbacks.Stopped, match=f"Stopped after {step}") as stopped:
        fit(tmp_path, extra=[Ask()])
    assert stopped.value.signal == signal.SIGTERM and signal.getsignal(signal.SIGTERM) is handler
    _, history = fit(tmp_path)
    assert what_counts(history) == what_counts(whole[1])


def test_rare_classes_count_more():
    source = Source(SOURCE.images, np.array([0] * 30 + [1] * 9 + [2], "int32"), SOURCE.class_names)
    weights = loop.class_weights(source)
    np.testing.assert_allclose(weights, [40 / 90, 40 / 27, 40 / 3])
    assert np.mean(weights[source.labels]) == pytest.approx(1)


@pytest.mark.parametrize("settings", [dict(freeze=1), dict(freeze="all"), dict(lora=2)])
def test_what_is_frozen_stays_and_the_rest_learns(tmp_path, settings):
    recipe = config.override(
        RECIPE, {f"optim.{k}": v for k, v in {**settings, "epochs": 1, "warmup_epochs": 0}.items()}
    )
    model = tiny()
    before = {v.path: v.numpy() for v in model.weights}
    fit(tmp_path, recipe, model)
    moved = {v.path.split("/")[0] for v in model.weights if v.path in before and (v.numpy() != before[v.path]).any()}
    expected = {"all": {"head"}, 1: {"block_1", "norm", "head"}, None: {"head"}}[settings.get("freeze")]
    assert moved == expected
    if "lora" in settings:
        best = keras.models.load_model(tmp_path / "best.keras")
        assert {v.path for v in best.weights} == set(before)
        image = SOURCE.images[:4]
        np.testing.assert_allclose(best.predict(image, verbose=0), model.predict(image, verbose=0), atol=1e-5)


def test_a_sigmoid_starts_where_its_bias_says(tmp_path):
    recipe = config.override(RECIPE, {"optim.loss": "sigmoid", "optim.head_bias": -2.0, "augment.mixup": 0})
    model = loop.prepare(tiny(), recipe.optim)
    loss = loop.compile_model(model, recipe, 5).test_on_batch(SOURCE.images, np.eye(3)[SOURCE.labels])[0]
    assert loss == pytest.approx(2 * np.log1p(np.exp(-2)) + np.log1p(np.exp(2)), rel=1e-5)


def test_float16_scales_its_loss_and_resumes(tmp_path):
    recipe = config.override(RECIPE, {"optim.epochs": 2})
    _, history = fit(tmp_path / "one", recipe, tiny(dtype="mixed_float16"), save_steps=2)
    with pytest.raises(SystemError):
        fit(tmp_path / "two", recipe, tiny(dtype="mixed_float16"), save_steps=2, extra=[Break(3)])
    _, found = fit(tmp_path / "two", recipe, tiny(dtype="mixed_float16"))
    assert what_counts(found) == what_counts(history)
    assert any("dynamic_scale" in name for name in state.newest(tmp_path / "one")[0])


def test_accuracy_counts_every_image():
    logits = loop.outputs(lambda images: np.eye(3)[SOURCE.labels[: len(images)]], RECIPE, SOURCE, (8, 8, 1))
    expected = np.mean([SOURCE.labels[i] == SOURCE.labels[i % 8] for i in range(40)])
    assert loop.measure(("accuracy",), *logits) == {"accuracy": pytest.approx(expected)}


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "holds no epoch"),
        ("epoch,loss\n", "holds no epoch"),
        ("epoch,loss\n0,0.5\n1", "is damaged"),
        ("epoch,loss\n0,0.5,3\n", "is damaged"),
        ("epoch,loss\n0,what\n", "is damaged: could not convert string to float: 'what'. `fit` writes it anew"),
    ],
)
def test_a_damaged_history_is_named(tmp_path, text, said):
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(ValueError, match=f"history.csv' {said}"):
        loop.read_history(tmp_path)
