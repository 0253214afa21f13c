import keras
import numpy as np
import pytest

from keras_vit.layers import AddToImage, JobConv2D, JobInput

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
MAPS, JOBS = RNG.normal(size=(3, 4, 6, 5)).astype("float32"), np.array([1, 0, 1], "int32")


def of_random_weights(filters=7, jobs=2):
    layer = JobConv2D(filters, jobs)
    layer([MAPS, JOBS])
    layer.set_weights([RNG.normal(size=v.shape).astype("float32") for v in layer.weights])
    return layer


def test_is_keras_convolution_with_the_kernel_of_each_images_job():
    layer = of_random_weights()
    got = np.asarray(layer([MAPS, JOBS]))
    for i, job in enumerate(JOBS):
        conv = keras.layers.Conv2D(7, 3, padding="same", data_format="channels_last")
        conv.build(MAPS.shape)
        conv.set_weights([layer.kernels[job], layer.biases[job]])
        np.testing.assert_allclose(got[i : i + 1], np.asarray(conv(MAPS[i : i + 1])), atol=1e-4)


def test_layer(tmp_path):
    maps, jobs = keras.Input(MAPS.shape[1:]), keras.Input((), dtype="int32")
    model = keras.Model([maps, jobs], JobConv2D(7, 2)([maps, jobs]))
    assert model.output_shape == (None, 4, 6, 7)
    assert sorted(v.name for v in model.weights) == ["bias_0", "bias_1", "kernel_0", "kernel_1"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded([MAPS, JOBS])), np.asarray(model([MAPS, JOBS])))
    half = JobConv2D(7, 2, dtype="mixed_bfloat16")([MAPS, JOBS])
    assert keras.backend.standardize_dtype(half.dtype) == "bfloat16"
    assert not np.asarray(JobConv2D(7, 2, zeros=True)([MAPS, JOBS])).any()


def test_a_batch_without_a_job_leaves_its_kernels_alone():
    inputs = [keras.Input(MAPS.shape[1:]), keras.Input((), dtype="int32")]
    model = keras.Model(inputs, JobConv2D(7, 2)(inputs))
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    before = {v.name: np.asarray(v) for v in model.weights}
    model.train_on_batch([MAPS, np.ones(3, "int32")], np.ones((3, 4, 6, 7)))
    changed = {v.name for v in model.weights if not np.array_equal(before[v.name], np.asarray(v))}
    assert changed == {"kernel_1", "bias_1"}


def test_one_job_gets_enlarged_images_and_its_index():
    images = RNG.integers(0, 256, (2, 8, 10, 3)).astype("float32")
    got, jobs = JobInput(job=2, scale=3)(images)
    enlarged = np.asarray(AddToImage(scale=3)([images, np.zeros((2, 24, 30, 3), "float32")]))
    np.testing.assert_array_equal(np.asarray(got), np.clip(np.rint(enlarged), 0, 255))
    assert np.asarray(jobs).tolist() == [2, 2]
    symbolic = JobInput(job=1)(keras.Input((8, 10, 3)))
    assert [x.shape for x in symbolic] == [(None, 8, 10, 3), (None,)] and symbolic[1].dtype == "int32"
    np.testing.assert_array_equal(np.asarray(JobInput(job=1)(images)[0]), images)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"the job of each, \(batch,\). Received: \[\(3, 4, 6, 5\), \(3, 1\)\]"):
        JobConv2D(7, 2)([MAPS, JOBS[:, None]])
    with pytest.raises(ValueError, match="`jobs` must be a positive integer. Received: jobs=0"):
        JobConv2D(7, 0)
    with pytest.raises(ValueError, match="`job` must be an integer, 0 or more. Received: job=-1"):
        JobInput(job=-1)
