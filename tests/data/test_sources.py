import io
import os
import pathlib
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe
from keras_vit.data import memory, pipeline, records, sources
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


def test_digits_are_split_without_overlap():
    parts = [sources.load(Data(), split) for split in ("all[:70%]", "all[70%:80%]", "all[80%:]")]
    assert [len(part) for part in parts] == [1258, 180, 359]
    assert parts[0].images.shape == (1258, 8, 8, 1) and parts[0].images.dtype == np.uint8
    assert parts[0].images.max() == 255
    everything = np.concatenate([part.images.reshape(-1, 64) for part in parts])
    assert sorted(map(bytes, everything)) == sorted(map(bytes, sources.load(Data(), "all").images))
    again = sources.load(Data(), "all[80%:]")
    np.testing.assert_array_equal(again.images, parts[2].images)


def test_limit():
    assert len(sources.load(Data(limit=16), "all[:70%]")) == 16


def test_folder(folder):
    source = sources.load(Data(source=f"folder:{folder}"), "all")
    assert source.class_names == ("cat", "dog") and source.files and len(source) == 8
    assert all(pathlib.Path(path).parent.name == "dog" for path in source.images[source.labels == 1])
    halves = [sources.load(Data(source=f"folder:{folder}"), split) for split in ("all[:50%]", "all[50%:]")]
    assert not set(halves[0].images) & set(halves[1].images)


def test_folder_with_splits_inside(folder):
    for name in ("cat/0.png", "dog/0.jpg"):
        target = folder / "test" / name
        target.parent.mkdir(parents=True)
        os.rename(folder / name, target)
    assert len(sources.load(Data(source=f"folder:{folder}"), "test")) == 2


def test_every_readable_kind_of_image_is_read(folder):
    picture(folder / "cat" / "cmyk.jpg", (10, 20, 30, 40), "CMYK")
    picture(folder / "cat" / "palette.png", 3, "P")
    picture(folder / "cat" / "grey.png", 128, "L")
    picture(folder / "cat" / "sixteen.png", 40_000, "I;16")
    picture(folder / "cat" / "alpha.png", (1, 2, 3, 128), "RGBA")
    picture(folder / "cat" / "moving.gif", 3, "P")
    picture(folder / "cat" / "small.bmp", (9, 8, 7))
    picture(folder / "cat" / "web.webp", (9, 8, 7))
    source = sources.load(Data(source=f"folder:{folder}"), "all")
    assert len(source) == 16
    pixels = {pathlib.Path(p).name: pipeline.read_files([p], (7, 9, 3))[0] for p in source.images}
    assert all(image.shape == (7, 9, 3) for image in pixels.values())
    assert abs(pixels["sixteen.png"].mean() - 40_000 / 257) < 1.5
    np.testing.assert_array_equal(pixels["alpha.png"][0, 0], [1, 2, 3])


def test_unreadable_images_are_named_or_left_out(folder, capsys):
    (folder / "cat" / "empty.png").touch()
    (folder / "cat" / "text.jpg").write_text("no image")
    whole = (folder / "dog" / "1.jpg").read_bytes()
    (folder / "dog" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    header = (folder / "cat" / "1.png").read_bytes()
    (folder / "cat" / "lies.png").write_bytes(header[:16] + struct.pack(">II", 2**30, 2**30) + header[24:])
    with pytest.raises(ValueError, match="4 of 12 images cannot be read") as error:
        sources.load(Data(source=f"folder:{folder}"), "all")
    for name in ("empty.png (empty file)", "text.jpg", "cut.jpg", "lies.png"):
        assert name in str(error.value)
    assert len(sources.load(Data(source=f"folder:{folder}", bad_images="skip"), "all")) == 8
    assert "Left out 4 of 12 images" in capsys.readouterr().out


@pytest.mark.parametrize(
    "source, split, error, said",
    [
        ("mnist", "all", ValueError, "data.source='mnist'"),
        ("digits:x", "all", ValueError, "data.source='digits:x'"),
        ("digits", "train", ValueError, "Received: 'train'"),
        ("digits", "all[80:]", ValueError, r"Received: 'all\[80:\]'"),
        ("digits", "all[50%:50%]", ValueError, "is empty"),
        ("digits", "all[:150%]", ValueError, "ends at 100 %"),
        ("folder:/no/such/place", "all", FileNotFoundError, "/no/such/place"),
        ("tfds:mnits", "train", ValueError, "Did you mean 'mnist'"),
        ("my/pictures", "all", ValueError, "data.source='my/pictures'; did you mean 'folder:my/pictures'"),
        ("~pictures", "all", ValueError, "did you mean 'folder:~pictures'"),
        ("/tmp", "all", ValueError, "did you mean 'folder:/tmp'"),
    ],
)
def test_bad_sources_are_named(source, split, error, said):
    with pytest.raises(error, match=said):
        sources.load(Data(source=source), split)


def test_a_folder_here_is_known_by_its_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match="did you mean 'folder:cat'"):
        sources.load(Data(source="cat"), "all")


def test_what_is_no_image_of_a_stranger_is_named_or_left_out(folder, capsys):
    for name, (data, _) in picturefiles.REFUSED.items():
        (folder / "cat" / name).write_bytes(data)
    picturefiles.irregular(folder / "cat")  # four, one of them a folder
    os.symlink("nothing.png", folder / "dog" / "broken.png")
    os.symlink("0.jpg", folder / "dog" / "link.jpg")
    count = len(picturefiles.REFUSED) + 3 + 1
    with pytest.raises(ValueError, match=f"{count} of {count + 9} images cannot be read") as told:
        sources.load(Data(source=f"folder:{folder}"), "all")
    assert f"and {count - 10} more" in str(told.value)
    source = sources.load(Data(source=f"folder:{folder}", bad_images="skip"), "all")
    assert len(source) == 9 and str(folder / "dog" / "link.jpg") in source.images
    assert f"Left out {count} of {count + 9} images" in capsys.readouterr().out


def test_names_that_are_no_utf_8(folder, capsys):
    files = [
        os.fsencode(folder / "cat") + b"/" + name for name in (b"\xff.png", b"\xfe.txt", b"x.\xfd", b"bad\xfc.png")
    ]
    for file in files:
        with open(file, "wb") as opened:
            opened.write((folder / "cat" / "0.png").read_bytes() if file == files[0] else b"")
    source = sources.load(Data(source=f"folder:{folder}", bad_images="skip"), "all")
    assert len(source) == 9 and os.fsdecode(files[0]) in source.images and source.fingerprint()
    said = capsys.readouterr().out
    assert r"x.\xfd" not in said and r".\xfd" in said and r"bad\xfc.png (empty file)" in said
    said.encode("utf-8")


@pytest.mark.parametrize("name", [b"\xff", b"two\nlines", "a\u2028b".encode()])
def test_names_of_classes_are_lines_of_utf_8(name, folder):
    os.mkdir(os.fsencode(folder) + b"/" + name)
    with pytest.raises(ValueError, match="one line of UTF-8. Received: ") as told:
        sources.load(Data(source=f"folder:{folder}"), "all")
    assert repr(os.fsdecode(name)) in str(told.value)


def test_classes_are_counted_after_leaving_out(folder):
    for i in range(4):
        (folder / "dog" / f"{i}.jpg").write_text("no image")
    with pytest.raises(ValueError, match="2 folders, 1 with images"):
        sources.load(Data(source=f"folder:{folder}", bad_images="skip"), "all")


def test_other_files_are_counted(folder, capsys):
    picture(folder / "cat" / "print.tif", 0)
    assert len(sources.load(Data(source=f"folder:{folder}"), "all")) == 8
    assert "Passed over 1 files that are no images by their ending: .tif" in capsys.readouterr().out


def test_splits_have_the_same_classes_and_their_own_fingerprint():
    one, two = (sources.load(Data(), split) for split in ("all[:50%]", "all[50%:]"))
    assert one.fingerprint() == sources.load(Data(), "all[:50%]").fingerprint() != two.fingerprint()
    sources.same_classes(one.class_names, two.class_names)
    with pytest.raises(ValueError, match="c only in one of them"):
        sources.same_classes("ab", "abc")


def test_bad_folders_are_named(tmp_path):
    def load(split="all"):
        return sources.load(Data(source=f"folder:{tmp_path}"), split)

    with pytest.raises(ValueError, match="at least two class folders.*0 folders"):
        load()
    picture(tmp_path / "cat" / "0.png", 0)
    with pytest.raises(ValueError, match="1 folders, 1 with images"):
        load()
    (tmp_path / "dog").mkdir()
    picture(tmp_path / "eel" / "0.png", 0)
    with pytest.raises(ValueError, match="without images: dog"):
        load()
    with pytest.raises(ValueError, match="no folder 'train'"):
        load("train")


def test_unprepared_data_without_network_is_told_at_once(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    def refuse(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(sources, "urlopen", refuse)
    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", lambda *_, **__: pytest.fail("downloads"))
    with pytest.raises(FileNotFoundError, match=r"'mnist' is not prepared.*no route to host.*TFDS_DATA_DIR.*mnist/3"):
        sources.load(Data(source="tfds:mnist"), "train")


def tar(path, members):
    """Writes the bytes of `members`, a dictionary, as an archive; returns its bytes."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path.read_bytes()


def jpeg(value, kind="JPEG"):
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (value, 0, 0)).save(file, kind)
    return file.getvalue()


def test_imagenet_is_prepared_from_the_official_archives(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(sources, "urlopen", lambda *_, **__: pytest.fail("asks the network"))
    data = Data(source="tfds:imagenet2012", batch_size=6)
    manual = tmp_path / "downloads" / "manual"
    with pytest.raises(FileNotFoundError, match=rf"in {manual} \(it is empty\): .*ILSVRC2012_img_train.tar and ILSVRC"):
        sources.load(data, "train")

    manual.mkdir(parents=True)
    inner = {
        f"{name}.tar": tar(tmp_path / "inner", {f"{name}_{i}.JPEG": jpeg(10 * i) for i in range(5)})
        for name in ("n01440764", "n01443537", "n15075141")
    }
    inner["n02105855.tar"] = tar(tmp_path / "inner", {"n02105855_2933.JPEG": jpeg(255, "PNG")})  # as in the real one
    tar(manual / "ILSVRC2012_img_train.tar", inner)
    with pytest.raises(FileNotFoundError, match=r"ILSVRC2012_img_val.tar; No such file"):
        sources.load(data, "train")
    tar(manual / "ILSVRC2012_img_val.tar", {f"ILSVRC2012_val_{i:08}.JPEG": jpeg(50 * i) for i in range(1, 5)})

    recipe = Recipe(name="x", model={}, data=data, augment=Augment(crop="inception", flip=True), optim=Optim(epochs=2))
    for share in (memory.SHARE, 0):
        monkeypatch.setattr(memory, "SHARE", share)
        train, validation = (sources.load(data, split) for split in ("train", "validation"))
        assert isinstance(train, memory.Source if share else records.Stream)
        assert train.class_names[:2] == ("n01440764", "n01443537") and len(train.class_names) == 1000
        assert sorted(train.labels) == [0] * 5 + [1] * 5 + [230] + [999] * 5
        found = list(pipeline.training_batches(train, recipe, (24, 24, 3), first_epoch=0).as_numpy_iterator())
        assert len(found) == 4  # two epochs of 16 images
        for images, labels in found:
            np.testing.assert_array_equal(images[:, 12, 12, 0] > 100, labels.argmax(-1) == 230)
        images, labels = next(pipeline.evaluation_batches(validation, recipe, (24, 24, 3)).as_numpy_iterator())
        true = {1: 65, 2: 970, 3: 230, 4: 809}  # of the first images, as ILSVRC's devkit has them
        assert {round(image[0, 0, 0] / 50): label for image, label in zip(images, labels.argmax(-1))} == true
        assert len(sources.load(data, "train[:75%]")) == 12


def test_arrays_are_checked():
    images = np.zeros((3, 4, 4, 1), "uint8")
    assert sources.from_arrays(images, [0, 1, 2], (4, 4, 1), 3).class_names == ("0", "1", "2")
    with pytest.raises(ValueError, match="1 outside"):
        sources.from_arrays(images, [0, 1, 3], (4, 4, 1), 3)
    with pytest.raises(ValueError, match=r"shape=\(3, 4, 4, 1\)"):
        sources.from_arrays(images, [0, 1, 2], (8, 8, 1), 3)


def test_a_source_that_does_not_fit_the_model_is_named():
    source = sources.from_arrays(np.zeros((3, 4, 4, 1), "uint8"), [0, 1, 2], (4, 4, 1), 3)
    assert sources.check(source, (8, 8, 1), 3) is source  # another size is resized, as recipes say
    with pytest.raises(ValueError, match="3 classes. Received: a model of 4"):
        sources.check(source, (4, 4, 1), 4)
    with pytest.raises(ValueError, match="1 channels. Received: a model of 3"):
        sources.check(source, (4, 4, 3), 3)
    files = sources.Source(np.array(["a.png"] * 3), source.labels, source.class_names, files=True)
    with pytest.raises(ValueError, match="1 or 3 channels. Received: a model of 4"):
        sources.check(files, (4, 4, 4), 3)
    with pytest.raises(ValueError, match=r"such as \[3\]"):
        sources.check(sources.Source(source.images, source.labels + 1, source.class_names), (4, 4, 1), 3)


@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
def test_real_mnist():
    source = sources.load(Data(source="tfds:mnist"), "train[55000:]")
    assert source.images.shape == (5000, 28, 28, 1) and source.images.dtype == np.uint8
    assert source.class_names == tuple("0123456789") and set(source.labels) == set(range(10))
    with pytest.raises(ValueError, match="no split 'validation'. Known: test, train"):
        sources.load(Data(source="tfds:mnist"), "validation")


@pytest.mark.skipif("KERAS_VIT_IMAGES" not in os.environ, reason="KERAS_VIT_IMAGES is not set")
def test_real_photographs():
    source = sources.load(Data(source=f"folder:{os.environ['KERAS_VIT_IMAGES']}", limit=20), "all")
    images = pipeline.read_files(source.images, (64, 96, 3))
    assert images.shape == (20, 64, 96, 3)
    assert images.min() >= 0 and images.max() <= 255 and 20 < images.std() < 110
