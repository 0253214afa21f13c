import keras
import numpy as np
import pytest

from keras_vit.layers.dense import Dense

pytestmark = pytest.mark.backend

X = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")


def model(rank=None, alpha=None, seed=0, mode=None):
    made = keras.Sequential([keras.Input((4,)), Dense(3, name="dense")])
    rng = np.random.default_rng(seed)
    made.set_weights([rng.normal(size=w.shape) for w in made.get_weights()])
    if mode is not None:
        made.quantize(mode)
    if rank is not None:
        made.layers[0].enable_lora(rank, lora_alpha=alpha)
        made.layers[0].lora_kernel_b.assign(rng.normal(size=(rank, 3)))
    return made


def gradients(made):
    """Returns the largest change of each of LoRA's matrices in one step."""
    before = [np.array(v) for v in made.trainable_variables]
    made.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
    made.train_on_batch(X, np.ones((5, 3), "float32"))
    return [np.abs(v - old).max() for v, old in zip(made.trainable_variables, before)]


@pytest.mark.parametrize("mode", [None, "int8"])
def test_lora_is_saved_as_it_is(tmp_path, mode):
    made, other = model(2, 6, mode=mode), model(2, 6, seed=1, mode=mode)
    made.save_weights(tmp_path / "a.weights.h5")
    other.load_weights(tmp_path / "a.weights.h5")
    for old, new in zip(made.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert min(gradients(other)) > 0


def test_a_layer_without_lora_loads_the_merged_kernel(tmp_path):
    made, plain = model(2, 6), model(seed=1)
    made.save_weights(tmp_path / "a.weights.h5")
    plain.load_weights(tmp_path / "a.weights.h5")
    np.testing.assert_allclose(plain(X), made(X), rtol=1e-5, atol=1e-5)


def test_lora_learns_after_a_file_without_it(tmp_path):
    plain, made = model(), model(2, seed=1)
    plain.save_weights(tmp_path / "a.weights.h5")
    made.load_weights(tmp_path / "a.weights.h5")
    np.testing.assert_allclose(made(X), plain(X), rtol=1e-6)
    assert gradients(made)[-1] > 0  # of the second matrix; the first one's follows


def test_lora_of_another_rank_or_onto_integers_is_refused():
    with pytest.raises(ValueError, match="must have the file's rank, 2. Received: rank 3"):
        model(3).layers[0].load_own_variables(values(model(2)))
    with pytest.raises(ValueError, match="is quantized: add LoRA"):
        model(mode="int8").layers[0].load_own_variables(values(model(2, mode="int8")))


def values(made):
    store = {}
    made.layers[0].save_own_variables(store)
    return {name: np.array(value) for name, value in store.items()}
