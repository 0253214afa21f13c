import pathlib

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Data  # noqa: E402
from keras_vit.data import inspection, memory, sources  # noqa: E402
from keras_vit.data.augment import masks  # noqa: E402
from keras_vit.data.readers import mask_folder  # noqa: E402
from keras_vit.utils.images import mask_pixels  # noqa: E402
from keras_vit.utils.warned import LeftOut  # noqa: E402

MASKS = ("segmentation_masks",)


def write(path, values, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **settings)


@pytest.fixture
def folder(tmp_path):
    for i in range(6):
        name, shape = f"{'ab'[i % 2]}/{i}", (7 + i, 9)
        write(tmp_path / "images" / f"{name}.{('png', 'jpg')[i % 2]}", np.full((*shape, 3), 10 * i, "uint8"))
        write(tmp_path / "masks" / f"{name}.png", np.full(shape, i, "uint8"))
    return tmp_path


def load(path, split="all", targets=MASKS, extras=(), **settings):
    return sources.load(Data(source=f"folder:{path}", **settings), split, targets, extras)


def read_all(source):
    with inspection.named(source):
        for mask in source.reader()(tf.range(len(source)))[MASKS[0]]:
            masks.decode(mask)


def stems(paths):
    return [pathlib.Path(path).stem for path in paths]


def test_masks_belong_to_the_images_of_their_names(folder):
    source = load(folder)
    assert len(source) == 6 and source.files and source.class_names == ()
    assert stems(source.images) == stems(source.targets[MASKS[0]]) and len(set(stems(source.images))) == 6
    found = source.mask_values
    assert sorted(found) == [0, 1, 2, 3, 4, 5] and found[3] == str(folder / "masks" / "b" / "3.png")
    part = load(folder, "all[:50%]")
    assert len(part) == 3 and set(part.mask_values) == {int(stem) for stem in stems(part.images)}
    halves = part.fingerprint(), load(folder, "all[50%:]").fingerprint(), source.fingerprint()
    assert len(set(halves)) == 3 and load(folder).fingerprint() == halves[2]


def test_hidden_files_are_no_masks(folder):
    (folder / "masks" / "a" / "._0.png").write_bytes(b"of another system")
    assert len(load(folder)) == 6


def test_contents_are_of_images_and_masks(folder):
    before = inspection.contents(train=load(folder))
    write(folder / "masks" / "a" / "0.png", np.full((7, 9), 5, "uint8"))
    assert inspection.contents(train=load(folder)) != before


def test_folders_of_splits(folder, tmp_path):
    (tmp_path / "root").mkdir()
    for name in ("images", "masks"):
        (tmp_path / "root" / "val").mkdir(exist_ok=True)
        (folder / name).rename(tmp_path / "root" / "val" / name)
    assert len(load(tmp_path / "root", "val")) == 6 and len(load(tmp_path / "root", "val[:50%]")) == 3
    with pytest.raises(ValueError, match="has no folder 'train'.*If the images are directly inside it, use splits of"):
        load(tmp_path / "root", "train")


def test_without_targets_masks_are_no_images(folder):
    source = load(folder, targets=(), extras=("labels",))
    assert not source.targets and sorted(stems(source.images)) == list("012345")
    assert "segmentation_masks" in load(folder, targets=(), extras=MASKS).targets


def test_palettes_are_held_as_indices(folder):
    image = Image.fromarray(np.full((7, 9), 4, "uint8"))
    image.putpalette(list(range(255, -1, -1)) * 3)
    image.save(folder / "masks" / "a" / "0.png")
    source = load(folder)
    held, at = source.targets[MASKS[0]], stems(source.images).index("0")
    assert held.dtype == object and sorted({mask_pixels(mask)[0, 0] for mask in held}) == [1, 2, 3, 4, 5]
    assert source.mask_values[4] == f"the mask of {source.images[min(at, stems(source.images).index('4'))]}"
    np.testing.assert_array_equal(masks.decode(source.reader()(tf.constant([at]))[MASKS[0]][0]), np.full((7, 9, 1), 4))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda f: (f / "masks/b/3.png").unlink(), r"have a mask, masks/NAME.png or .*. Received: '.*b/3.jpg' without"),
        (lambda f: (f / "images/b/3.jpg").unlink(), r"must have an image of its name. Received: '.*masks/b/3.png'"),
        (lambda f: write(f / "masks/a/2.png", np.zeros((5, 4), "uint8")),
         r"size of its image. Received: '.*a/2.png' of 4 x 5 pixels for an image of 9 x 9$"),
        (lambda f: write(f / "masks/a/2.png", np.zeros((9, 9, 3), "uint8")),
         r"gray with 8 bits or fewer, or a palette; or .* Received: '.*a/2.png', PNG of mode 'RGB'$"),
        (lambda f: write(f / "masks/a/2.png", np.zeros((9, 9, 4), "uint8")), "mode 'RGBA'"),
        (lambda f: write(f / "masks/a/2.bmp", np.zeros((9, 9), "uint8")), r"must be PNG or .tif or .* '.*2.bmp'"),
        (lambda f: (f / "masks/a/2.png").write_bytes(b"no image"), r"1 of 6 images cannot.*\n.*2.png \(its mask: is n"),
        (lambda f: write(f / "images/b/3.png", np.zeros((10, 9), "uint8")), r"name of its own.*3\.jpg'.*3\.png'"),
        (lambda f: write(f / "masks/b/3.PNG", np.zeros((10, 9), "uint8")), r"one mask. Received: '.*3.PNG', '.*3.png'"),
        (lambda f: (f / "masks").rename(f / "m"), "contain the folders 'images' and 'masks'. Received: images, m"),
        (lambda f: [file.unlink() for file in f.rglob("*.*")], "images' must contain images. Received: none"),
    ],
)  # fmt: skip
def test_one_error_names_the_file(folder, change, said):
    change(folder)
    with pytest.raises(ValueError, match=said):
        load(folder)


def test_unreadable_images_and_masks_may_be_left_out_in_pairs(folder):
    (folder / "masks/a/2.png").write_bytes(b"no image")
    (folder / "images/b/3.jpg").write_bytes(b"no image")
    with pytest.warns(LeftOut, match="Left out 2 of 6 images"):
        source = load(folder, bad_images="skip")
    assert sorted(stems(source.images)) == list("0145") and len(source.digests) == 4


@pytest.mark.parametrize("fault", [b"no image", None])
def test_a_mask_that_went_bad_is_named(folder, fault, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", 0)  # files are read when they are needed
    source, path = load(folder), folder / "masks" / "b" / "3.png"
    path.write_bytes(fault) if fault else path.unlink()
    with pytest.raises(ValueError, match=r"b/3.png' was readable when it was checked, and now is not: "):
        read_all(source)


def test_labels_are_not_read_with_masks(folder):
    for targets in (("labels", *MASKS), ("labels",)):  # "images" and "masks" are no classes
        with pytest.raises(ValueError, match="has no labels. It has: images, segmentation masks"):
            load(folder, targets=targets)
    assert mask_folder.is_paired(folder) and not mask_folder.is_paired(folder / "images")


@pytest.fixture
def with_rasters(folder):
    """Masks as a TIFF with tiles, a TIFF with a palette and an array, of the same values as the PNGs before."""
    tifffile = pytest.importorskip("tifffile")
    for name, kind in (("a/0", "tif"), ("a/2", "tiff"), ("b/3", "npy")):
        path = folder / "masks" / f"{name}.png"
        values = np.asarray(Image.open(path))
        path.unlink()
        if kind == "npy":
            np.save(path.with_suffix(".npy"), values.astype("int64").astype("int16"))
        elif kind == "tif":
            tifffile.imwrite(path.with_suffix(".tif"), values, tile=(16, 16), compression="deflate")
        else:
            colors = np.zeros((3, 256), "uint16")
            tifffile.imwrite(path.with_suffix(".tiff"), values, photometric="palette", colormap=colors)
    return folder


def held_of(source):
    """Yields the name of each image and the values of its mask."""
    for name, mask in zip(stems(source.images), source.targets[MASKS[0]]):
        yield name, mask_pixels(mask) if isinstance(mask, bytes) else masks.values_of(mask)


def test_masks_of_tiffs_and_arrays_are_those_of_pngs(folder, request):
    before = dict(held_of(load(folder)))
    source = load(request.getfixturevalue("with_rasters"))
    after = dict(held_of(source))
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values)
    assert source.mask_values.keys() == {1, 2, 3, 4, 5} | {0}


@pytest.mark.parametrize(
    "values, said",
    [
        (np.zeros((9, 9), "float32"), "1 bands of float32"),
        (np.zeros((9, 9, 2), "uint8"), "2 bands of uint8"),
        (np.full((9, 9), 256, "uint16"), "values from 256 to 256"),
        (np.full((9, 9), -1, "int8"), "values from -1 to -1"),
    ],
)
def test_arrays_that_are_no_masks(folder, values, said):
    (folder / "masks/a/2.png").unlink()
    np.save(folder / "masks/a/2.npy", values)
    with pytest.raises(ValueError, match=f"of integers from 0 to 255. Received: '.*a/2.npy', {said}"):
        load(folder)


def test_a_damaged_tiff_of_a_mask_is_named(with_rasters):
    path = with_rasters / "masks/a/0.tif"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"1 of 6 images cannot.*\n.*\(its mask: is (a damaged|cut off)"):
        load(with_rasters)
