import os
import pathlib
import struct

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.readers import image_files
from keras_vit.utils.warned import LeftOut
from tests import picturefiles


def picture(path, value, mode="RGB", size=(9, 7)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)


@pytest.fixture
def folder(tmp_path):
    for i in range(4):
        picture(tmp_path / "cat" / f"{i}.png", (250, i, 0))
        picture(tmp_path / "dog" / f"{i}.jpg", (0, 250, i))
    return tmp_path


def load(path, split="all", **settings):
    return sources.load(Data(source=f"folder:{path}", **settings), split)


def test_folder(folder):
    source = load(folder)
    assert source.class_names == ("cat", "dog") and source.files and len(source) == 8
    assert all(pathlib.Path(path).parent.name == "dog" for path in source.images[source.labels == 1])
    halves = [load(folder, split) for split in ("all[:50%]", "all[50%:]")]
    assert not set(halves[0].images) & set(halves[1].images)


def test_a_folder_of_twelve_bits_in_files_of_sixteen_is_warned_of(folder):
    for name in ("cat", "dog"):
        Image.fromarray(np.full((9, 7), 4095, "uint16")).save(folder / name / "scan.png")
    with pytest.warns(UserWarning, match="2 of 10 images have 16 bits per channel and no value above 4095 of 65535"):
        assert len(load(folder)) == 10
    Image.fromarray(np.full((9, 7), 40_000, "uint16")).save(folder / "cat" / "bright.png")
    assert len(load(folder)) == 11  # dark ones among others; warnings are errors here


def test_folder_with_splits_inside(folder):
    for name in ("cat/0.png", "dog/0.jpg"):
        target = folder / "test" / name
        target.parent.mkdir(parents=True)
        os.rename(folder / name, target)
    assert len(load(folder, "test")) == 2


def test_every_readable_kind_of_image_is_read(folder):
    picture(folder / "cat" / "cmyk.jpg", (10, 20, 30, 40), "CMYK")
    picture(folder / "cat" / "palette.png", 3, "P")
    picture(folder / "cat" / "gray.png", 128, "L")
    picture(folder / "cat" / "sixteen.png", 40_000, "I;16")
    picture(folder / "cat" / "alpha.png", (1, 2, 3, 128), "RGBA")
    picture(folder / "cat" / "moving.gif", 3, "P")
    picture(folder / "cat" / "small.bmp", (9, 8, 7))
    picture(folder / "cat" / "web.webp", (9, 8, 7))
    source = load(folder)
    assert len(source) == 16
    pixels = {pathlib.Path(p).name: image_files.read_files([p], (7, 9, 3))[0] for p in source.images}
    assert all(image.shape == (7, 9, 3) for image in pixels.values())
    assert abs(pixels["sixteen.png"].mean() - 40_000 / 257) < 1.5
    np.testing.assert_array_equal(pixels["alpha.png"][0, 0], [1, 2, 3])


def test_unreadable_images_are_named_or_left_out(folder):
    (folder / "cat" / "empty.png").touch()
    (folder / "cat" / "text.jpg").write_text("no image")
    whole = (folder / "dog" / "1.jpg").read_bytes()
    (folder / "dog" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    header = (folder / "cat" / "1.png").read_bytes()
    (folder / "cat" / "lies.png").write_bytes(header[:16] + struct.pack(">II", 2**30, 2**30) + header[24:])
    with pytest.raises(ValueError, match="4 of 12 images cannot be read") as error:
        load(folder)
    for name in ("empty.png (empty file)", "text.jpg", "cut.jpg", "lies.png"):
        assert name in str(error.value)
    with pytest.warns(LeftOut, match=r"Left out 4 of 12 images, which cannot be read:\n.*empty.png \(empty file\)"):
        assert len(load(folder, bad_images="skip")) == 8


def test_what_is_no_image_of_a_stranger_is_named_or_left_out(folder):
    refused = {name: data for name, (data, _) in picturefiles.REFUSED.items()} | {"empty.png": b"", "nul.png": b"\0"}
    for name, data in refused.items():
        (folder / "cat" / name).write_bytes(data)
    picturefiles.irregular(folder / "cat")  # four, one of them a folder
    os.symlink("nothing.png", folder / "dog" / "broken.png")
    os.symlink("0.jpg", folder / "dog" / "link.jpg")
    count = len(refused) + 3 + 1
    with pytest.raises(ValueError, match=f"{count} of {count + 9} images cannot be read") as refused:
        load(folder)
    assert f"and {count - 10} more" in str(refused.value)
    with pytest.warns(LeftOut, match=f"Left out {count} of {count + 9} images(.*\n)+  and {count - 10} more"):
        source = load(folder, bad_images="skip")
    assert len(source) == 9 and str(folder / "dog" / "link.jpg") in source.images


def test_names_that_are_no_utf_8(folder):
    files = [
        os.fsencode(folder / "cat") + b"/" + name for name in (b"\xff.png", b"\xfe.txt", b"x.\xfd", b"bad\xfc.png")
    ]
    for file in files:
        with open(file, "wb") as opened:
            opened.write((folder / "cat" / "0.png").read_bytes() if file == files[0] else b"")
    with pytest.warns(LeftOut) as caught:
        source = load(folder, bad_images="skip")
    assert len(source) == 9 and os.fsdecode(files[0]) in source.images and source.fingerprint()
    printed = "\n".join(str(warning.message) for warning in caught)
    assert r"x.\xfd" not in printed and r".\xfd" in printed and r"bad\xfc.png (empty file)" in printed
    printed.encode("utf-8")


def test_names_of_classes_are_lines_of_utf_8(folder):
    for name in (b"\xff", b"two\nlines", "a\u2028b".encode()):
        path = os.fsencode(folder) + b"/" + name
        os.mkdir(path)
        with pytest.raises(ValueError, match="one line of UTF-8. Received: ") as refused:
            load(folder)
        assert repr(os.fsdecode(name)) in str(refused.value)
        os.rmdir(path)


def test_classes_are_counted_after_leaving_out(folder):
    for i in range(4):
        (folder / "dog" / f"{i}.jpg").write_text("no image")
    with pytest.raises(ValueError, match="2 folders, 1 with images"):
        load(folder, bad_images="skip")


def test_other_files_are_counted(folder, capsys):
    picture(folder / "cat" / "print.ico", 0)
    with pytest.warns(LeftOut, match="Left out 1 files without an image extension: .ico"):
        assert len(load(folder)) == 8
    for hidden in (
        "cat/._0.png",
        "cat/.checkpoints/0.png",
        "cat/@eaDir/0.png",
        "__MACOSX/cat/._0.png",
        "__MACOSX/0.png",
    ):
        picture(folder / hidden, 0)
    with pytest.warns(LeftOut, match="Left out 1 files without an image extension: .ico"):
        assert len(load(folder)) == 8
    assert not capsys.readouterr().out


def test_bad_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must not be a whole disk. Received: '.*'"):
        sources.load(Data(source=f"folder:{tmp_path.anchor}"), "all")
    with pytest.raises(ValueError, match="at least two class folders.*0 folders"):
        load(tmp_path)
    picture(tmp_path / "cat" / "0.png", 0)
    with pytest.raises(ValueError, match="1 folders, 1 with images"):
        load(tmp_path)
    (tmp_path / "dog").mkdir()
    picture(tmp_path / "eel" / "0.png", 0)
    with pytest.raises(ValueError, match="without images: dog"):
        load(tmp_path)
    with pytest.raises(ValueError, match="no folder 'train'"):
        load(tmp_path, "train")


def test_without_targets_all_images_are_read(folder):
    source = sources.load(Data(source=f"folder:{folder}"), "all", ())
    assert len(source) == 8 and not source.targets and source.class_names == () and source.digests.shape == (8, 16)
    labeled = sources.load(Data(source=f"folder:{folder}"), "all", (), ("labels",))
    np.testing.assert_array_equal(labeled.labels, load(folder).labels)
    assert labeled.fingerprint() == load(folder).fingerprint() != source.fingerprint()
    picture(folder / "alone.png", 0)
    flat = sources.load(Data(source=f"folder:{folder}"), "all", (), ("labels",))  # no class folders alone
    assert len(flat) == 9 and not flat.targets
    assert len(sources.load(Data(source=f"folder:{folder}"), "cat[:50%]", (), ("labels",))) == 2
    (folder / "empty" / "inside").mkdir(parents=True)
    with pytest.raises(ValueError, match="empty' must contain images .*Received: none"):
        sources.load(Data(source=f"folder:{folder}"), "empty", ())


@pytest.mark.skipif("KERAS_VIT_IMAGES" not in os.environ, reason="KERAS_VIT_IMAGES is not set")
def test_real_photographs():
    source = load(os.environ["KERAS_VIT_IMAGES"], limit=20)
    images = image_files.read_files(source.images, (64, 96, 3))
    assert images.shape == (20, 64, 96, 3)
    assert images.min() >= 0 and images.max() <= 255 and 20 < images.std() < 110


def test_folders_of_splits_are_no_classes(folder):
    (folder / "train").mkdir()
    for kind in ("cat", "dog"):
        os.rename(folder / kind, folder / "train" / kind)
        picture(folder / "Val" / kind / "0.png", 1)
    with pytest.raises(ValueError, match="of splits, Val, train: .* such as data.validation=Val data.train=train"):
        load(folder)
    assert len(load(folder, "train")) == 8 and len(load(folder, "Val")) == 2


def test_links_are_followed(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    picture(other / "9.png", (1, 2, 3))
    (folder / "cat" / "more").symlink_to(other)
    (folder / "cat" / "round").symlink_to(folder / "cat")
    assert len(load(folder)) == 9


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "$RECYCLE.BIN",
        "$Recycle.Bin",
        "__MACOSX",
        "@eaDir",
        "@EADIR",
        "#recycle",
        "System Volume Information",
    ]
    + [".ipynb_checkpoints", ".thumbnails", "__pycache__"],
)
@pytest.mark.parametrize("inside", ["", "cat"])
def test_folders_of_systems_are_no_classes(folder, name, inside):
    picture(folder / inside / name / "deleted.png", (9, 9, 9))
    (folder / "._cat.png").write_bytes(b"x")
    source = load(folder)
    assert source.class_names == ("cat", "dog") and len(source) == 8
    found = sources.load(Data(source=f"folder:{folder}"), "all", (), ("labels",))
    assert found.class_names == ("cat", "dog") and len(found) == 8  # labels that are no targets too


def test_endings_of_images(folder):
    for name in ("A.JPE", "b.jfif", "c.JPEG"):
        Image.new("RGB", (9, 7)).save(folder / "cat" / name, "JPEG")
    assert len(load(folder)) == 11
    for name in ("d.avif", "e.ICO"):
        (folder / "dog" / name).write_bytes(b"x")
    with pytest.warns(LeftOut, match="Left out 2 files without an image extension: .avif, .ico"):
        assert len(load(folder)) == 11
