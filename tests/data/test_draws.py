import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.draws import draws, scaled  # noqa: E402


@pytest.mark.parametrize("numbers", [1, 3, 4, 5, 8])
def test_a_position_draws_the_same_wherever_the_run_begins(numbers):
    whole = draws(3, 2, 0)("x", 317, numbers).numpy()
    assert whole.shape == (317, numbers) and whole.dtype == np.float32
    np.testing.assert_array_equal(draws(3, 2, 300)("x", 17, numbers).numpy(), whole[300:])
    far = 2**40  # positions need not be small
    np.testing.assert_array_equal(
        draws(3, 2, far + 5)("x", 2, numbers).numpy(), draws(3, 2, far)("x", 7, numbers).numpy()[5:]
    )


def test_in_a_graph_as_outside():
    inside = tf.function(lambda epoch, first: draws(3, epoch, first)("x", 5, 6))
    epoch, first = (tf.constant(value, tf.int64) for value in (2, 300))
    np.testing.assert_array_equal(inside(epoch, first), draws(3, 2, 300)("x", 5, 6))


def test_numbers_are_uniform():
    values = np.sort(draws(1, 0, 0)("x", 50_000, 4).numpy().ravel())
    assert values[0] >= 0 and values[-1] < 1
    distance = np.abs(values - (np.arange(len(values)) + 0.5) / len(values)).max()
    assert distance < 1.63 / np.sqrt(len(values))  # Kolmogorov and Smirnov's, at 1 %


def test_columns_positions_names_epochs_and_seeds_are_independent():
    base = draws(1, 2, 0)("x", 20_000, 4).numpy()
    others = (
        draws(1, 2, 0)("y", 20_000, 4).numpy(),
        draws(1, 3, 0)("x", 20_000, 4).numpy(),
        draws(2, 2, 0)("x", 20_000, 4).numpy(),
        draws(2, 1, 0)("x", 20_000, 4).numpy(),
        np.roll(base, 1, axis=0),
    )
    correlation = np.corrcoef(np.concatenate((base, *others), axis=1).T)
    assert np.abs(correlation - np.eye(24)).max() < 5 / np.sqrt(20_000)


def test_scaled():
    np.testing.assert_allclose(scaled(tf.constant([0.0, 0.5, 0.75]), -1, 3), [-1, 1, 2])
