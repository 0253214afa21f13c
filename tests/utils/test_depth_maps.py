import io

import numpy as np
import pytest
from PIL import Image

from keras_vit.utils import depth_maps

DEPTH = np.random.default_rng(0).uniform(0.5, 9, (4, 6)).astype("float32")


def png(values, mode=None):
    file = io.BytesIO()
    Image.fromarray(values, mode).save(file, "PNG")
    return file.getvalue()


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "uint16"])
def test_numbers_of_any_kind(kind):
    values = (100 * DEPTH).astype(kind)
    np.testing.assert_array_equal(depth_maps.depth_pixels(npy(values)), values.astype("float32"))
    np.testing.assert_array_equal(depth_maps.depth_pixels(values[..., None]), values.astype("float32"))


def test_holes_are_zero():
    holes = DEPTH.copy()
    holes[0, 0], holes[1, 1] = np.nan, 0
    assert [depth_maps.depth_pixels(npy(holes))[i, i] for i in (0, 1)] == [0, 0]
    assert depth_maps.depth_pixels(png((1000 * DEPTH).astype("uint16")))[2, 3] == np.floor(1000 * DEPTH[2, 3])


@pytest.mark.parametrize(
    "data, pattern",
    [
        (npy(-DEPTH), "at least 0; 0 and NaN are holes. Received: -"),
        (npy(DEPTH * np.float32("inf")), "must be finite"),
        (npy(0 * DEPTH), "Received: nothing but holes"),
        (npy(np.full((3, 3), np.nan)), "Received: nothing but holes"),
        (npy(np.asfortranarray(DEPTH)), "row by row. Received: <f4, column by column"),
        (npy(DEPTH.astype(">f4")), "must be of float32, float64, float16, uint16, row by row. Received: >f4"),
        (npy((10 * DEPTH).astype("int64")), "Received: <i8"),
        (npy(np.stack([DEPTH] * 3, -1)), "of the shape .rows, columns.. Received: shape=.4, 6, 3."),
        (npy(np.array([object()])), "allow_pickle"),
        (png((20 * DEPTH).astype("uint8")), "gray PNG of 16 bits or a .npy file"),
        (png(np.stack([(20 * DEPTH).astype("uint8")] * 3, -1)), "gray PNG of 16 bits or a .npy file"),
        (b"nonsense", "gray PNG of 16 bits or a .npy file"),
    ],
)
def test_other_maps_are_refused(data, pattern):
    with pytest.raises(ValueError, match=pattern):
        depth_maps.depth_pixels(data)


def test_files(tmp_path):
    for ending, data in ((".npy", npy(DEPTH)), (".png", png((1000 * DEPTH).astype("uint16")))):
        (tmp_path / f"a{ending}").write_bytes(data)
        assert depth_maps.depth_file(tmp_path / f"a{ending}") == data
        assert depth_maps.fault(tmp_path / f"a{ending}") is None
    (tmp_path / "b.npy").write_bytes(npy(-DEPTH))
    assert "at least 0" in depth_maps.fault(tmp_path / "b.npy")
    assert "no such file" in depth_maps.fault(tmp_path / "c.npy").lower()
    np.testing.assert_array_equal(depth_maps.depth_pixels(depth_maps.npy_bytes(DEPTH)), DEPTH)


def test_a_png_says_what_its_values_mean():
    data = depth_maps.depth_png(np.array([[0, 70000], [-3, 12.6]]), depth="steps")
    with Image.open(io.BytesIO(data)) as image:
        assert image.text == {"depth": "steps"} and image.mode == "I;16"
        np.testing.assert_array_equal(np.asarray(image), [[0, 65535], [0, 13]])


def test_another_size_is_bicubic_as_pytorch_s():
    torch = pytest.importorskip("torch")
    for size in ((8, 9), (3, 5), (4, 6)):
        wanted = torch.nn.functional.interpolate(torch.tensor(DEPTH)[None, None], size, mode="bicubic")[0, 0]
        np.testing.assert_allclose(depth_maps.resized_map(DEPTH, size), wanted.numpy(), atol=1e-5)


def test_a_flat_map_keeps_its_value_at_another_size():
    np.testing.assert_allclose(depth_maps.resized_map(np.full((3, 5), 2.5, "float32"), (7, 11)), 2.5, rtol=1e-6)


def test_colors_follow_the_values():
    colors = depth_maps.colored_map(np.linspace(-3, 5, 50)[None])
    light = colors.astype(int).sum(-1)[0]
    assert colors.shape == (1, 50, 3) and (np.diff(light) > 0).mean() > 0.8 and light[0] < 120 < 500 < light[-1]
    assert depth_maps.colored_map(np.zeros((2, 2))).shape == (2, 2, 3)
