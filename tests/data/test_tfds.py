import io
import os
import tarfile

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe
from keras_vit.data import memory, pipeline, records, sources, tfds


def test_unprepared_data_without_network_fails_at_once(tmp_path, monkeypatch):
    import tensorflow_datasets

    def refuse(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(tfds, "urlopen", refuse)
    monkeypatch.setattr(
        tensorflow_datasets.core.DatasetBuilder, "download_and_prepare", lambda *_, **__: pytest.fail("downloads")
    )
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
    monkeypatch.setattr(tfds, "urlopen", lambda *_, **__: pytest.fail("asks the network"))
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


@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
def test_real_mnist():
    source = sources.load(Data(source="tfds:mnist"), "train[55000:]")
    assert source.images.shape == (5000, 28, 28, 1) and source.images.dtype == np.uint8
    assert source.class_names == tuple("0123456789") and set(source.labels) == set(range(10))
    with pytest.raises(ValueError, match="no split 'validation'. Known: test, train"):
        sources.load(Data(source="tfds:mnist"), "validation")
