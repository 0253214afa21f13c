import dataclasses
import io
import os
import tarfile
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe  # noqa: E402
from keras_vit.data import memory, pipeline, sources  # noqa: E402
from keras_vit.data.augment.boxes import EMPTY  # noqa: E402
from keras_vit.data.readers import records, tfds  # noqa: E402
from keras_vit.tasks.base import Task  # noqa: E402
from keras_vit.utils.images import mask_pixels  # noqa: E402
from tests import exiffiles, picturefiles  # noqa: E402
from tests.marks import slow  # noqa: E402


def test_what_tensorflow_datasets_cannot_load_is_one_sentence(monkeypatch):
    import tensorflow_datasets

    class ConnectError(Exception):
        """As of Hugging Face's client, which is asked for names such as `huggingface:mnist`."""

    def refuse(*_, **__):
        raise ConnectError("[Errno -2] Name or service not known")

    said = "tensorflow-datasets cannot load 'mnist:9.9.9': .*cannot be loaded at version"
    with pytest.raises(ValueError, match=said):
        sources.load(Data(source="tfds:mnist:9.9.9"), "train")
    monkeypatch.setattr(tensorflow_datasets, "builder", refuse)
    with pytest.raises(ValueError, match="cannot load 'huggingface:mnist': .*Name or service not known"):
        sources.load(Data(source="tfds:huggingface:mnist"), "train")


def test_unprepared_data_without_network_fails_at_once(tmp_path, monkeypatch):
    import tensorflow_datasets

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(tfds, "urlopen", mock.Mock(side_effect=OSError("no route to host")))
    monkeypatch.setattr(
        tensorflow_datasets.core.DatasetBuilder, "download_and_prepare", lambda *_, **__: pytest.fail("downloads")
    )
    for name, folder in (("mnist", "mnist/3"), ("cifar10_corrupted/brightness_1", "cifar10_corrupted/brightness_1/1")):
        with pytest.raises(FileNotFoundError, match=rf"is not prepared.*no route to host.*TFDS_DATA_DIR.*{folder}"):
            sources.load(Data(source=f"tfds:{name}"), "train")


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


@slow
def test_imagenet_is_prepared_from_the_official_archives(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(tfds, "urlopen", lambda *_, **__: pytest.fail("asks the network"))
    data = Data(source="tfds:imagenet2012", batch_size=6)
    manual = tmp_path / "downloads" / "manual"
    said = rf"in {manual} \(it is empty\): .*_img_train.tar and ILSVRC.* set TFDS_DATA_DIR to .*imagenet2012/5"
    with pytest.raises(FileNotFoundError, match=said):
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
        recipe = dataclasses.replace(recipe, task=recipe.task.on(train))
        assert sorted(train.labels) == [0] * 5 + [1] * 5 + [230] + [999] * 5
        found = list(pipeline.training_batches(train, recipe, (24, 24, 3), first_epoch=0).as_numpy_iterator())
        assert len(found) == 4  # two epochs of 16 images
        for images, labels in found:
            np.testing.assert_array_equal(images[:, 12, 12, 0] > 100, labels.argmax(-1) == 230)
        images, labels = next(pipeline.evaluation_batches(validation, recipe, (24, 24, 3)).as_numpy_iterator())
        true = {1: 65, 2: 970, 3: 230, 4: 809}  # of the first images, as ILSVRC's devkit has them
        assert {round(image[0, 0, 0] / 50): label for image, label in zip(images, labels.argmax(-1))} == true
        assert len(sources.load(data, "train[:75%]")) == 12


MASKS = ("segmentation_masks",)


@pytest.fixture
def pets(tmp_path, monkeypatch):
    """A data set like oxford_iiit_pet: two labels, images and masks of several sizes, and other features."""
    import tensorflow_datasets
    from tensorflow_datasets.core import features

    class TinyPets(tensorflow_datasets.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tensorflow_datasets.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(
                features=features.FeaturesDict(
                    {
                        "image": features.Image(shape=(None, None, 3)),
                        "label": features.ClassLabel(names=["a", "b", "c"]),
                        "species": features.ClassLabel(num_classes=2),
                        "segmentation_mask": features.Image(shape=(None, None, 1)),
                        "boxes": features.Sequence(features.BBoxFeature()),
                        "kinds": features.Sequence(features.ClassLabel(names=["p", "q", "r"])),
                        "objects": features.Sequence(
                            {
                                "bbox": features.BBoxFeature(),
                                "label": features.ClassLabel(names=["x", "y"]),
                                "pose": features.ClassLabel(names=["left"]),
                                "is_crowd": np.bool_,
                            }
                        ),
                        "name": features.Text(),
                    }
                )
            )

        def _split_generators(self, _):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            for i in range(9):
                shape = (6 + i, 8, 1)
                objects = [
                    {"bbox": features.BBox(0.1 * k, 0.2, 0.5 + 0.1 * k, 0.3 + i / 100), "label": k % 2, "pose": 0}
                    | {"is_crowd": k == 2}
                    for k in range(i % 4)
                ]
                yield i, {"image": np.full((*shape[:2], 3), 20 * i, "uint8"), "label": i % 3, "species": i % 2,
                          "segmentation_mask": np.full(shape, i % 4, "uint8"), "boxes": [], "name": str(i),
                          "objects": objects, "kinds": [k for k in range(3) if i >> k & 1]}  # fmt: skip

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    TinyPets(data_dir=tmp_path).download_and_prepare()
    return Data(source="tfds:tiny_pets", batch_size=3)


@dataclass(frozen=True, repr=False)
class Pairs(Task):
    targets = MASKS

    def batch(self, examples, augment, seed):
        return examples["images"], examples["segmentation_masks"]


@pytest.mark.parametrize("share", [1 / 4, 0])
def test_masks_are_read_by_the_type_of_their_feature(pets, share, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", share)
    monkeypatch.setattr(records, "FIRST", 8)
    source = sources.load(pets, "train", MASKS)
    assert isinstance(source, memory.Source if share else records.Stream) and len(source) == 9
    assert tuple(source.targets) == MASKS and source.class_names == ()
    assert sorted(source.mask_values) == [0, 1, 2, 3] and source.mask_values[0].startswith("mask ")
    assert source.mask_counts.shape[1] == 256 and source.mask_counts.sum(0).tolist()[4:] == [0] * 252
    assert np.count_nonzero(source.mask_counts.sum(0)) == 4  # of all masks
    recipe = Recipe(name="x", model={}, task=Pairs(), data=pets, augment=Augment(flip=True), optim=Optim(epochs=1))
    dataset = pipeline.training_batches(source, recipe, (5, 4, 3), first_epoch=0)
    seen = [pair for images, found in dataset.as_numpy_iterator() for pair in zip(images, found)]
    assert sorted(int(image[0, 0, 0]) // 20 for image, _ in seen) == list(range(9))
    for image, mask in seen:
        np.testing.assert_array_equal(mask, np.full((5, 4, 1), image[0, 0, 0] // 20 % 4))
    raw = [
        example for batch in pipeline.evaluation_arrays(source, recipe, (5, 4, 3)) for example in zip(*batch.values())
    ]
    for image, mask in raw:
        number = int(image[0, 0, 0]) // 20
        np.testing.assert_array_equal(mask_pixels(mask), np.full((6 + number, 8), number % 4))
    everything = sources.load(pets, "train", (), (*MASKS, "labels"))
    assert set(everything.targets) == {"labels", *MASKS} and everything.class_names == ("a", "b", "c")
    alone, labeled = (sources.load(pets, "train", targets) for targets in ((), ("labels",)))
    assert not alone.targets and sorted(labeled.labels) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({s.fingerprint() for s in (source, everything, alone, labeled)}) == 4


def test_boxes_and_classes_of_objects_are_read(pets, monkeypatch):
    source = sources.load(pets, "train", ("bounding_boxes",))
    held = source.targets["bounding_boxes"]
    assert source.class_names == ("x", "y") and held.shape == (9, 3, 5) and held.dtype == np.float32
    numbers = [int(tf.io.decode_png(image)[0, 0, 0]) // 20 for image in source.images]
    assert sorted(numbers) == list(range(9))
    for i, rows in zip(numbers, held):
        count = i % 4
        expected = [[0.1 * k, 0.2, 0.5 + 0.1 * k, 0.3 + i / 100, -2 if k == 2 else k] for k in range(count)] + [
            EMPTY
        ] * (3 - count)
        np.testing.assert_allclose(rows, np.float32(expected), atol=1e-6)
    monkeypatch.setattr(memory, "SHARE", 0)
    with pytest.raises(ValueError, match="with bounding boxes must fit into memory. Received: 'tiny_pets'"):
        sources.load(pets, "train", ("bounding_boxes",))


def test_sequences_of_class_labels_are_several_labels(pets, monkeypatch):
    source = sources.load(pets, "train", ("multilabels",))
    assert source.class_names == ("p", "q", "r") and source.targets["multilabels"].dtype == np.int8
    numbers = [int(tf.io.decode_png(image)[0, 0, 0]) // 20 for image in source.images]
    assert source.targets["multilabels"].tolist() == [[i & 1, i >> 1 & 1, i >> 2 & 1] for i in numbers]
    monkeypatch.setattr(memory, "SHARE", 0)
    with pytest.raises(ValueError, match="with multilabels must fit into memory. Received: 'tiny_pets'"):
        sources.load(pets, "train", ("multilabels",))


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    """A data set of JPEG files, of which one has an EXIF orientation; with masks."""
    import tensorflow_datasets
    from tensorflow_datasets.core import features

    class TinyPhotographs(tensorflow_datasets.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tensorflow_datasets.core.Version("1.0.0")

        def _info(self):
            image, mask = features.Image(encoding_format="jpeg"), features.Image(shape=(None, None, 1))
            found = {"image": image, "segmentation_mask": mask, "label": features.ClassLabel(num_classes=2)}
            return self.dataset_info_from_configs(features=features.FeaturesDict(found))

        def _split_generators(self, _):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            for i, number in enumerate((1, 6)):
                mask = np.zeros((*picturefiles.COLOR.shape[:2], 1), "uint8")
                file = io.BytesIO(exiffiles.jpeg(exiffiles.tiff(number)))
                yield i, {"image": file, "segmentation_mask": mask, "label": i}

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    TinyPhotographs(data_dir=tmp_path).download_and_prepare()
    return Data(source="tfds:tiny_photographs", batch_size=2)


@pytest.mark.parametrize("share", [1 / 4, 0])
def test_photographs_are_turned_upright_unless_they_have_masks(photographs, share, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", share)
    recipe = Recipe(name="x", model={}, data=photographs)
    (batch,) = pipeline.evaluation_arrays(sources.load(photographs, "train", ("labels",)), recipe, (20, 20, 3))
    upright, turned = (batch["images"][list(batch["labels"]).index(i)] for i in (0, 1))
    assert np.abs(np.rot90(upright, -1) - turned).mean() < 1
    paired = Recipe(name="x", model={}, task=Pairs(), data=photographs)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="EXIF orientation"):
        list(pipeline.evaluation_arrays(sources.load(photographs, "train", MASKS), paired, (20, 20, 3)))


def test_features_are_picked_by_their_type():
    from tensorflow_datasets.core import features as f

    picture, gray, label = f.Image(shape=(None, None, 3)), f.Image(shape=(4, 4, 1)), f.ClassLabel(num_classes=2)
    keys = lambda targets, extras=(), **found: tfds.feature_keys(found, "x", targets, extras)  # noqa: E731
    assert keys(("labels",), photo=picture, kind=label) == {"images": "photo", "labels": "kind"}
    assert keys(("labels",), image=gray, a=label, label=label) == {"images": "image", "labels": "label"}
    assert keys(MASKS, a=gray, b=picture) == {"images": "b", "segmentation_masks": "a"}
    assert keys(MASKS, image=gray, mask=gray, depth=gray) == {"images": "image", "segmentation_masks": "mask"}
    assert keys((), MASKS, image=gray, text=f.Text()) == {"images": "image"}
    sixteen = f.Image(shape=(4, 4, 1), dtype=np.uint16)
    for targets, found, message in (
        (("labels",), dict(image=gray), "'x' has no labels. It has: image"),
        (("labels",), dict(image=gray, a=label, b=label), "'x' has no labels. It has: image, a, b"),
        (MASKS, dict(image=gray, label=label), "'x' has no segmentation masks. It has: image, label"),
        (MASKS, dict(image=picture, depth=sixteen), "'x' has no segmentation masks"),
        ((), dict(a=picture, b=picture), "must have an image of one or three channels. Received: 'x' of a, b"),
        ((), dict(label=label), "must have an image of one or three channels. Received: 'x' of label"),
        ((), dict(image=sixteen), "Images must be of type uint8. Received: 'x', whose images are of type"),
    ):
        with pytest.raises(ValueError, match=message):
            keys(targets, **found)


@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
def test_real_mnist():
    source = sources.load(Data(source="tfds:mnist"), "train[55000:]")
    assert source.images.shape == (5000, 28, 28, 1) and source.images.dtype == np.uint8
    assert source.class_names == tuple("0123456789") and set(source.labels) == set(range(10))
    with pytest.raises(ValueError, match="'mnist' has no segmentation masks. It has: image, label"):
        sources.load(Data(source="tfds:mnist"), "train", MASKS)
    with pytest.raises(ValueError, match="no split 'validation'. Known: test, train"):
        sources.load(Data(source="tfds:mnist"), "validation")
