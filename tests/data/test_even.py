import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data.even import even_batches


class Numbers:
    """A source of numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def take(self, index):
        return Numbers(self.numbers[index])


@pytest.mark.parametrize("images, batch_size, count", [(36, 16, 1), (36, 16, 2), (33, 16, 4), (7, 16, 4), (16, 4, 4)])
def test_in_an_evaluation_every_image_counts_once(images, batch_size, count):
    def make(source, size):
        numbers = tf.data.Dataset.from_tensor_slices((source.numbers, source.numbers)).batch(size)
        return numbers.map(lambda x, y: (tf.reshape(x, (-1, 1, 1, 1)), tf.reshape(y, (-1, 1))))

    source = Numbers(np.arange(1.0, images + 1, dtype="float32"))
    parts = [even_batches(make, source, batch_size, (i, count)) for i in range(count)]
    assert len({len(part) for part in parts}) == 1
    batches = [batch for part in parts for batch in part.as_numpy_iterator()]
    assert {x.shape for x, _, _ in batches} == {(batch_size // count, 1, 1, 1)}
    numbers, weights = (np.concatenate([b[i].reshape(-1) for b in batches]) for i in (1, 2))
    assert sorted(numbers[weights > 0]) == list(source.numbers)
    assert np.isclose(np.average(numbers, weights=weights), source.numbers.mean())  # what Keras's accuracy is
    assert np.isclose((numbers * weights).mean(), source.numbers.mean())  # what Keras's loss is


def test_inputs_and_targets_may_be_structures():
    def make(source, size):
        numbers = tf.data.Dataset.from_tensor_slices(source.numbers).batch(size)
        return numbers.map(lambda n: ({"images": n, "noise": tf.stack([n, n], 1)}, tf.cast(n[:, None, None], "uint8")))

    source = Numbers(np.arange(1.0, 8.0, dtype="float32"))
    batches = [batch for i in (0, 1) for batch in even_batches(make, source, 4, (i, 2)).as_numpy_iterator()]
    assert {(x["noise"].shape, y.shape, y.dtype.name) for x, y, _ in batches} == {((2, 2), (2, 1, 1), "uint8")}
    for x, y, weights in batches:
        assert set(x) == {"images", "noise"} and not x["images"][weights == 0].any()
        np.testing.assert_array_equal(x["images"], y[:, 0, 0])
    assert sorted(n for x, _, w in batches for n in x["images"][w > 0]) == list(source.numbers)


def test_an_evaluation_needs_an_image_for_each_process():
    with pytest.raises(ValueError, match="Received: 3 images, 4 processes"):
        even_batches(None, Numbers(np.zeros(3)), 8, (0, 4))
