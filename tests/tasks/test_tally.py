import numpy as np
import pytest

from keras_vit.tasks.tally import Tally


def test_a_tally_returns_means_of_what_is_noted():
    tally = Tally()
    assert tally.result() == {} and tally.figures() == {}
    for value in (0.25, 0.75):
        tally.note("accuracy", value)
    tally.note("error", np.float32(2.0))
    assert tally.result() == {"accuracy": 0.5, "error": 2.0}
    assert Tally().result() == {}  # another one begins anew
    with pytest.raises(NotImplementedError):
        tally.add({}, np.zeros((2, 3)))


def test_what_is_kept_of_batches_is_joined():
    tally = Tally(keep=True)
    for count in (2, 3):
        tally.kept.append((np.arange(count), np.ones((count, 4))))
    for _ in range(2):
        labels, outputs = tally.arrays()
        assert labels.tolist() == [0, 1, 0, 1, 2] and outputs.shape == (5, 4)
    tally.kept.append((np.arange(1), np.ones((1, 4))))  # more may come
    assert len(tally.arrays()[0]) == 6
