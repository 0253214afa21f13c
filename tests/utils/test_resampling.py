import pathlib

import numpy as np
import pytest

from keras_vit.utils import resampling

pytestmark = pytest.mark.backend


def test_sincos_1d_by_hand():
    table = resampling.sincos_1d(5, 4)
    for n in range(5):
        expected = [np.sin(n), np.cos(n), np.sin(n / 100), np.cos(n / 100)]  # 10000^(2/4) = 100
        np.testing.assert_allclose(table[n], expected, atol=1e-6)


@pytest.mark.parametrize("inclusive, last", [(True, 1e-4), (False, 1e-2)])
def test_sincos_2d_by_hand(inclusive, last):
    table = resampling.sincos_2d((2, 3), 8, inclusive)  # frequencies 1 and 1/10000, or 1/100
    for y in range(2):
        for x in range(3):
            expected = [
                *(np.sin(x), np.sin(x * last), np.cos(x), np.cos(x * last)),
                *(np.sin(y), np.sin(y * last), np.cos(y), np.cos(y * last)),
            ]
            np.testing.assert_allclose(table[3 * y + x], expected, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: resampling.sincos_1d(5, 3),
        lambda: resampling.sincos_2d((2, 2), 6),
        lambda: resampling.sincos_2d((2, 2), 4),
    ],
)
def test_bad_width_is_named(call):
    with pytest.raises(ValueError, match="Received: width="):
        call()


GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "torch_resized.npz"  # positions, and PyTorch's answers
GRIDS = sorted(name for name in np.load(GOLDEN).files if name.count("-") == 1)


def resized(grid, method):
    """Returns a golden table of positions and its resized form, as grids, and the grid wanted."""
    table = np.load(GOLDEN)[grid]
    target = tuple(int(side) for side in grid.split("-")[1].split("x"))
    found = resampling.resize_grid(table.reshape(-1, table.shape[-1]), table.shape[:2], target, method)
    return table, found.reshape(*target, -1), target


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    "method",
    ["bilinear", "bicubic", "bilinear-antialias", "bicubic-antialias", "bicubic-offset", "bicubic-corners"],
)
def test_pytorch_s_methods(grid, method):
    _, found, _ = resized(grid, method)
    np.testing.assert_allclose(found, np.load(GOLDEN)[f"{grid}-{method}"], atol=1e-5)


@pytest.mark.parametrize("grid", GRIDS)
def test_scipy_s_zoom(grid):
    ndimage = pytest.importorskip("scipy.ndimage", reason="SciPy is not installed")
    table, found, target = resized(grid, "zoom")
    zoom = [t / s for t, s in zip(target, table.shape)] + [1]
    np.testing.assert_allclose(found, ndimage.zoom(table, zoom, order=1), atol=1e-5)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_jax_s_methods(grid, method):
    image = pytest.importorskip("jax.image", reason="JAX is not installed")
    table, found, target = resized(grid, f"jax-{method}")
    np.testing.assert_allclose(found, image.resize(table, (*target, table.shape[-1]), method), atol=1e-5)


@pytest.mark.parametrize("method", resampling.METHODS)
def test_the_same_grid_is_left_alone_and_constants_stay(method):
    table = np.random.default_rng(0).normal(size=(12, 4)).astype("float32")
    assert resampling.resize_grid(table, (3, 4), (3, 4), method) is table
    np.testing.assert_allclose(resampling.resize_matrix(7, 11, method).sum(1), 1)
    np.testing.assert_allclose(resampling.resize_matrix(11, 4, method).sum(1), 1)


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match="resample='nearest'"):
        resampling.resize_grid(np.zeros((4, 2)), (2, 2), (3, 3), "nearest")


@pytest.mark.parametrize("method", ["bilinear", "bicubic-antialias"])
def test_larger_patches_give_the_same_tokens(method):
    """FlexiViT, equation 4: patches enlarged by the method give what they gave before."""
    rng = np.random.default_rng(0)
    kernel, patch = rng.normal(size=(4, 6, 3, 5)), rng.normal(size=(4, 6, 3))
    larger = resampling.resize_patches(kernel, (8, 9), method)
    rows, columns = resampling.resize_matrix(4, 8, method), resampling.resize_matrix(6, 9, method)
    enlarged = np.einsum("tr,uc,rcx->tux", rows, columns, patch)
    before, after = (np.einsum("rcx,rcxo->o", *pair) for pair in ((patch, kernel), (enlarged, larger)))
    np.testing.assert_allclose(before, after, atol=1e-10)


def test_patches_are_resized_by_the_whole_pseudo_inverse():
    kernel = np.random.default_rng(0).normal(size=(4, 3, 1, 1))
    rows, columns = resampling.resize_matrix(4, 2, "bilinear"), resampling.resize_matrix(3, 5, "bilinear")
    whole = np.linalg.pinv(np.kron(rows, columns).T) @ kernel.reshape(-1)
    np.testing.assert_allclose(resampling.resize_patches(kernel, (2, 5), "bilinear").reshape(-1), whole, atol=1e-10)


def test_distances_keep_what_is_near():
    grid, wanted = (5, 6), (8, 9)
    line = lambda sides: np.add.outer(*(np.arange(1 - side, side) for side in sides)).reshape(-1, 1)  # noqa: E731
    table = np.concatenate([line(grid), [[7.0], [8.0], [9.0]]]).astype("float32")
    assert resampling.resize_distances(table, grid, grid) is table
    resized = resampling.resize_distances(table, grid, wanted)
    assert resized.shape == (15 * 17 + 3, 1) and resized.dtype == "float32"
    np.testing.assert_array_equal(resized[-3:, 0], [7, 8, 9])
    by_place = resized[:-3].reshape(15, 17)
    np.testing.assert_allclose(by_place[6:9, 7:10], [[-2, -1, 0], [-1, 0, 1], [0, 1, 2]], atol=1e-6)  # near ones
    np.testing.assert_allclose(by_place[[0, -1], [0, -1]], [-9, 9], atol=1e-3)  # the furthest
    assert (np.diff(by_place, axis=0) > 0).all()
