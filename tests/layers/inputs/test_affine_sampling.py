import keras
import numpy as np
import pytest
import scipy.ndimage
from keras import ops

from keras_vit import AffineSampling, export_tflite
from keras_vit.explain.relevance import gradients
from tests.harness import Apart, run_layer_test

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 5, 7, 2)).astype("float32")
IDENTITY = np.array([1, 0, 0, 0, 1, 0], "float32")
MATRICES = np.array([[0.8, 0.3, 0.1, -0.2, 1.1, -0.3], [1, 0, 0.5, 0, 1, 0], [-1.4, 0.1, 0, 0.2, 0.6, 0.2]], "float32")


def sampled(images, matrices, **options):
    return ops.convert_to_numpy(AffineSampling(**options)(images, matrices))


def grid_sample(image, matrix, size, align_corners):
    """Returns PyTorch's `grid_sample(image, affine_grid(matrix, size))` of one image, by its documentation."""

    def grid(count):
        return np.linspace(-1, 1, count) if align_corners else (2 * np.arange(count) + 1) / count - 1

    (a, b, c, d, e, f), (rows, columns) = matrix.astype("float64"), image.shape[:2]
    output = np.zeros((*size, image.shape[2]))
    for i, y in enumerate(grid(size[0])):
        for j, x in enumerate(grid(size[1])):
            places = []
            for place, count in ((a * x + b * y + c, columns), (d * x + e * y + f, rows)):
                places.append((place + 1) / 2 * (count - 1) if align_corners else ((place + 1) * count - 1) / 2)
            for row, column in np.ndindex(rows, columns):
                share = max(0, 1 - abs(places[0] - column)) * max(0, 1 - abs(places[1] - row))
                output[i, j] += share * image[row, column]
    return output


def test_layer(tmp_path):
    make = lambda dtype: AffineSampling(size=(4, 3), dtype=dtype)  # noqa: E731
    run_layer_test(make, Apart([(2, 5, 7, 2), (2, 6)]), (2, 4, 3, 2), tmp_path=tmp_path)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("side", [2, 5, 28, 33])
def test_the_identity_is_exact(side, align_corners):
    """Others lose the last row and column: tensorflow/models' issues 193 and 2016."""
    images = RNG.normal(size=(1, side, side + 1, 3)).astype("float32")
    np.testing.assert_array_equal(sampled(images, IDENTITY[None], align_corners=align_corners), images)


@pytest.mark.parametrize("size, align_corners", [((5, 7), False), ((4, 9), False), ((1, 3), False), ((4, 9), True)])
def test_pytorch_s_formula(size, align_corners):
    found = sampled(IMAGES, MATRICES.reshape(-1, 2, 3), size=size, align_corners=align_corners)
    expected = [grid_sample(*pair, size, align_corners) for pair in zip(IMAGES, MATRICES)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scipy_computes_the_same():
    """Its matrices count rows before columns, in pixels from the first one's center."""
    a, b, c, d, e, f = MATRICES[0].astype("float64")
    rows, columns = IMAGES.shape[1:3]
    center = (np.array([rows, columns]) - 1) / 2
    matrix = np.array([[e, d * rows / columns], [b * columns / rows, a]])
    offset = center + np.array([f * rows, c * columns]) / 2 - matrix @ center
    found = sampled(IMAGES[:1], MATRICES[:1])[0]
    for channel in range(2):
        image = IMAGES[0, ..., channel].astype("float64")
        expected = scipy.ndimage.affine_transform(image, matrix, offset, order=1, mode="grid-constant")
        np.testing.assert_allclose(found[..., channel], expected, atol=1e-5)


def test_outside_is_zero():
    far = np.array([[1, 0, 2.5, 0, 1, 0]], "float32")  # by more than the width
    np.testing.assert_array_equal(sampled(IMAGES[:1], far), np.zeros((1, 5, 7, 2)))


def test_gradients_are_the_differences():
    layer, upstream = AffineSampling(size=(4, 3)), RNG.normal(size=(3, 4, 3, 2)).astype("float32")

    def value(images, matrices):
        return float(np.sum(ops.convert_to_numpy(layer(images, matrices)).astype("float64") * upstream))

    of_images, of_matrices = gradients(lambda pair: ops.sum(layer(*pair) * upstream), [IMAGES, MATRICES])
    for position in ((0, 1, 2, 0), (2, 4, 6, 1)):
        step = np.zeros_like(IMAGES)
        step[position] = 0.5
        change = value(IMAGES + step, MATRICES) - value(IMAGES - step, MATRICES)
        np.testing.assert_allclose(np.asarray(of_images)[position], change, atol=1e-3)
    for position in np.ndindex(3, 6):
        step = np.zeros_like(MATRICES)
        step[position] = 1e-3
        change = (value(IMAGES, MATRICES + step) - value(IMAGES, MATRICES - step)) / 2e-3
        np.testing.assert_allclose(np.asarray(of_matrices)[position], change, atol=0.02)


def test_the_slope_at_the_identity_is_that_towards_the_next_pixel():
    """A localisation network begins there: without a slope, it would never learn."""
    ramp = np.tile(np.arange(7, dtype="float32")[None, None, :, None], (1, 5, 1, 1))
    (slopes,) = gradients(lambda tensors: ops.sum(AffineSampling()(ramp, tensors[0])[:, :, :-1]), [IDENTITY[None]])
    np.testing.assert_allclose(np.asarray(slopes)[0, 2], 5 * 6 * 3.5, rtol=1e-5)  # 3.5 pixels for each 1 of c


def test_it_learns_to_move(tmp_path):
    """Half a pixel: the matrix alone is trained, from the identity."""
    image = scipy.ndimage.gaussian_filter(RNG.normal(size=(12, 12)), 1.5)[None, :, :, None].astype("float32")
    truth = IDENTITY + np.array([0.05, 0, 0.1, 0, 0, -0.1], "float32")
    wanted, matrix = sampled(image, truth[None]), IDENTITY[None].copy()
    loss = lambda tensors: ops.sum((AffineSampling()(image, tensors[0]) - wanted) ** 2)  # noqa: E731
    first = float(loss([ops.convert_to_tensor(matrix)]))
    for _ in range(40):
        (slopes,) = gradients(loss, [matrix])
        matrix = matrix - 0.01 * np.asarray(slopes) / (np.linalg.norm(slopes) + 1e-9)
    assert float(loss([ops.convert_to_tensor(matrix)])) < 0.1 * first


@pytest.mark.parametrize(
    "images, matrices, said",
    [
        ((1, 4, 4), (1, 6), r"images must be \(batch, height, width, channels\)"),
        ((1, 4, 4, 1), (1, 5), r"matrices \(batch, 6\) or \(batch, 2, 3\). Received: shapes .*\(1, 5\)"),
    ],
)
def test_other_shapes_are_refused(images, matrices, said):
    with pytest.raises(ValueError, match=said):
        AffineSampling()(np.zeros(images, "float32"), np.zeros(matrices, "float32"))
    with pytest.raises(ValueError, match="Received: size=0"):
        AffineSampling(0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exports from TensorFlow")
def test_a_spatial_transformer_is_exported(tmp_path):
    """`export_tflite` refuses operators that are not built in, and compares the file with the model."""
    images = keras.Input((8, 8, 3))
    kernel, bias = keras.initializers.RandomNormal(stddev=0.1, seed=0), keras.initializers.Constant(IDENTITY)
    dense = keras.layers.Dense(6, kernel_initializer=kernel, bias_initializer=bias)
    x = AffineSampling(size=6)(images, dense(keras.layers.Flatten()(images)))
    model = keras.Model(images, keras.layers.Dense(3)(keras.layers.Flatten()(x)))
    export_tflite(model, tmp_path / "m.tflite", images=RNG.uniform(size=(4, 8, 8, 3)).astype("float32"))
