import os
import resource
import signal

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_vit.training import state

pytestmark = pytest.mark.backend

ARRAYS = {
    "model/0/kernel": np.arange(6, dtype="float32").reshape(2, 3),
    "model/1/half": np.array([1.5, -2], ml_dtypes.bfloat16),
    "optimizer/0/iteration": np.array(7, "int64"),
    "model/2/seed_generator/state": np.array([3, 4], "uint32"),
}
NOTES = {"epoch": 1, "history": [{"loss": 0.1 + 0.2}]}


def test_what_is_saved_comes_back_exactly(tmp_path):
    path = state.save(tmp_path, 12, ARRAYS, NOTES)
    arrays, notes, found = state.newest(tmp_path)
    assert found == path and notes == NOTES and arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_the_last_two_are_kept_by_step_and_not_by_clock(tmp_path):
    for step in (1, 2, 10, 9999999):
        path = state.save(tmp_path, step, ARRAYS, {"step": step})
        os.utime(path, (10**9 - step, 10**9 - step))  # a clock that goes back
    assert [p.name.split("-")[1] for p in sorted(tmp_path.iterdir())] == ["0000000010", "0009999999"]
    assert state.newest(tmp_path)[1] == {"step": 9999999}


def test_nothing_there_is_none(tmp_path):
    assert state.newest(tmp_path) is None and not state.exists(tmp_path)
    (tmp_path / ".part-state").write_bytes(b"half")
    assert state.newest(tmp_path) is None


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path):
    state.save(tmp_path, 1, ARRAYS, NOTES)
    path = state.save(tmp_path, 2, ARRAYS, {"newer": True})
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [whole[: rng.integers(len(whole))] for _ in range(40)]
    for _ in range(80):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(
            UserWarning, match=r"state-0000000002-\w+.safetensors' is damaged \(.*\); using the one before it"
        ):
            assert state.newest(tmp_path)[1] == NOTES


def test_a_run_goes_on_from_the_one_before_a_damaged_one(tmp_path):
    state.save(tmp_path, 1, ARRAYS, NOTES)
    state.save(tmp_path, 8, ARRAYS, NOTES).write_bytes(b"")
    good = state.save(tmp_path, 5, ARRAYS, {"after": 1})
    assert state.newest(tmp_path)[2] == good and len(list(tmp_path.iterdir())) == 2


def test_a_directory_with_the_name_of_a_state_is_refused(tmp_path):
    state.save(tmp_path, 1, ARRAYS, NOTES)
    (tmp_path / f"state-0000000002-{'0' * 16}.safetensors").mkdir()  # the next state could not take its place
    with pytest.raises(ValueError, match=r"state-0000000002-0+.safetensors' must be a training state. Received: a dir"):
        state.newest(tmp_path)


def test_all_damaged_is_said(tmp_path):
    state.save(tmp_path, 1, ARRAYS, NOTES).write_bytes(b"x")
    said = "Every training state in .* is damaged: state-0000000001"
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(ValueError, match=said):
        state.newest(tmp_path)


def test_a_full_disk_is_one_sentence_and_leaves_the_last_state(tmp_path):
    good = state.save(tmp_path, 1, ARRAYS, NOTES)
    big = {"model/0/kernel": np.zeros(10**6, "float32")}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, limits[1]))
    try:
        with pytest.raises(
            OSError, match=r"training state after step 2 could not be written.*MB free.*last good one is state-"
        ):
            state.save(tmp_path, 2, big, NOTES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == [good] and state.newest(tmp_path)[1] == NOTES


def test_a_folder_that_is_gone_is_one_sentence(tmp_path):
    with pytest.raises(
        OSError,
        match="state after step 2 could not be written to '.*nowhere', which is not there .*There is no earlier one",
    ):
        state.save(tmp_path / "nowhere", 2, ARRAYS, NOTES)


def test_variables_of_another_model_are_refused():
    variables = state.named(model=[keras.Variable(np.zeros((2, 3)), name="kernel")])
    state.assign(variables, {"model/0/kernel": ARRAYS["model/0/kernel"]})
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variables["model/0/kernel"]), ARRAYS["model/0/kernel"])
    for arrays in ({"model/0/kernel": np.zeros((3, 2))}, {"model/0/other": np.zeros((2, 3))}, {}):
        with pytest.raises(ValueError, match="does not fit this model and optimizer. Different: model/0/"):
            state.assign(variables, arrays)


def test_numbers_that_keras_gives_layers_may_differ():
    made = state.named(model=[keras.Variable(np.zeros((2, 3)), name="dense_4_kernel")])
    state.assign(made, {"model/0/dense_kernel": ARRAYS["model/0/kernel"]})
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(made["model/0/dense_4_kernel"]), ARRAYS["model/0/kernel"])
