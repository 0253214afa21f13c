import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import patch_maps
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.patch_maps import InPatches, PatchMaps, sampled
from keras_vit.utils.tiles import rows_of
from keras_vit.utils.warned import LeftOut
from tests.small import peak

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def embedder():
    keras.utils.set_random_seed(0)
    model = keras_vit.vit("mu/4", image_size=(32, 24), num_classes=0, depth=1, pooling="gap")
    return Embedder(model, tokens=True)


def whole(maps, image, then=None):
    return maps.each([image], lambda picture: np.concatenate([*maps.rows(picture, then)]))[0]


def means(pixels):
    """Returns the mean of each patch of 4 x 4."""
    count, height, width, channels = pixels.shape
    return pixels.reshape(count, height // 4, 4, width // 4, 4, channels).mean((2, 4))


@pytest.mark.parametrize("sides", [(32, 24), (64, 48), (70, 53), (10, 9), (10, 60), (33, 25), (1, 200)])
def test_a_map_has_the_patches_of_the_picture_where_they_are(sides):
    """As torchgeo#431 and detectree2#211: tiles end with the picture; as anomalib#1958: the map has its own shape."""
    image = RNG.integers(0, 256, (*sides, 3)).astype("float32")
    picture = InPatches(image, (4, 4), (8, 6))
    rows = np.concatenate([*rows_of(means, picture, (8, 6, 48), 0.25, step=1)])[: picture.own[0], : picture.own[1]]
    continued = np.pad(image, [(0, -side % 4) for side in sides] + [(0, 0)], "edge")
    np.testing.assert_allclose(rows, means(continued[None])[0], rtol=1e-5)


def test_a_picture_of_one_tile_gives_what_it_gave_without(embedder):
    """As anomalib#1451, whose results with one tile and without were compared."""
    image = RNG.integers(0, 256, (32, 24, 3), "uint8")
    maps = PatchMaps(embedder, True)
    np.testing.assert_allclose(whole(maps, image), embedder(image)[0], atol=1e-5)


def test_a_file_is_read_by_windows_to_the_same_map(embedder, tmp_path):
    image = RNG.integers(0, 256, (70, 61, 3), "uint8")
    maps = PatchMaps(embedder, {"overlap": 0.5})
    np.save(tmp_path / "a.npy", image)
    found = whole(maps, image)
    assert found.shape == (18, 16, embedder.shape[-1])
    np.testing.assert_array_equal(whole(maps, tmp_path / "a.npy"), found)


def test_larger_tiles_are_shrunk_to_the_model(embedder):
    image = RNG.integers(0, 256, (64, 48, 3), "uint8")
    maps = PatchMaps(embedder, {"size": 64})
    assert maps.tile == (64, 48) and maps.patch == (8, 8) and whole(maps, image).shape == (8, 6, embedder.shape[-1])
    with pytest.raises(ValueError, match="a multiple of 8 x 6 pixels.* such as 64 x 48. Received: 65 x 49"):
        PatchMaps(embedder, {"size": 65})


def test_tokens_of_tiles_are_counted_and_chosen(embedder):
    maps = PatchMaps(embedder, True)
    for sides in ((70, 61), (10, 9), (32, 24)):
        picture = InPatches(RNG.integers(0, 256, (*sides, 3), "uint8"), maps.patch, maps.grid)
        every = np.concatenate([*maps.tokens(picture)])
        assert len(every) == maps.count(picture)
        tokens, chosen = sampled(maps.tokens(picture), len(every), 10**6)
        np.testing.assert_array_equal(tokens, every)
        tokens, chosen = sampled(maps.tokens(picture), len(every), 5, seed=3)
        assert len(set(chosen.tolist())) == min(5, len(every)) and (np.diff(chosen) > 0).all()
        np.testing.assert_array_equal(tokens, every[chosen])


def test_memory_holds_no_features_of_a_whole_picture():
    count, width = 2000, 500
    parts = (np.zeros((100, width), "float32") for _ in range(count // 100 * 20))
    assert peak(lambda: sampled(parts, 20 * count, 500)) < 4 * width * (20 * count) / 10


def test_pictures_that_cannot_be_read_are_named(embedder, tmp_path):
    """As of files that are damaged in the middle: what was found of them until then is dropped."""
    image = RNG.uniform(0, 255, (70, 61, 3)).astype("uint8")
    damaged = tmp_path / "b.tif"
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(damaged, image, tile=(16, 16), photometric="rgb", compression="zlib")
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    damaged.write_bytes(data)
    maps = PatchMaps(embedder, True)
    work = lambda picture: np.concatenate([*maps.rows(picture)]).shape[:2]  # noqa: E731
    with pytest.raises(ValueError, match="b.tif"):
        maps.each([image, damaged], work)
    with pytest.warns(LeftOut, match="Left out 2 of 3 images, which cannot be read:\n.*"):
        assert maps.each([tmp_path / "none.png", image, damaged], work, "skip") == [None, (18, 16), None]
    with pytest.raises(ValueError, match="No image could be read. The first of 1: .*b.tif"):
        maps.each([damaged], work, "skip")
    with pytest.raises(ValueError, match="must contain an image"):
        maps.each([], work)


def test_features_that_are_not_finite_are_an_error(embedder):
    maps = PatchMaps(embedder, True)
    picture = np.zeros((40, 40, 3), "uint8")
    broken = lambda pixels: patch_maps.finite(np.full((len(pixels), 8, 6, 2), np.nan))  # noqa: E731
    maps.features = broken
    with pytest.raises(ValueError, match="must return finite features. Received: NaN or infinity for an image"):
        maps.each([picture], lambda each: [*maps.rows(each)], "skip")


@pytest.mark.parametrize(
    "tiles, message",
    [
        ("yes", "`tiles` must be True, False or a dictionary. Received: tiles='yes'"),
        ({"stride": 2}, "`an option of tiles` must be one of 'size', 'overlap'. Received: .*'stride'"),
        ({"overlap": 0.6}, "tiles.overlap must be a number from 0 to 0.5. Received: 0.6"),
        ({"size": 0}, "`tiles.size` must be a positive integer or"),
    ],
)
def test_bad_options(embedder, tiles, message):
    with pytest.raises(ValueError, match=message):
        PatchMaps(embedder, tiles)


def test_a_constant_picture_has_a_constant_map():
    """As LMI_AI_Solutions#401 and image-super-resolution#105: no seam where tiles meet, and none at the borders."""
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap", position=None)
    found = whole(PatchMaps(Embedder(model, tokens=True), True), np.full((70, 101, 3), 90, "uint8"))
    assert found.shape == (18, 26, model.output_shape[-1])
    np.testing.assert_allclose(found, np.broadcast_to(found[0, 0], found.shape), rtol=1e-4, atol=1e-5)
