import dataclasses

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.data import cutting, sources
from keras_vit.data.memory import Source

SMALL = {"image_size": 32, "patch_size": 16, "depth": 1, "width": 16, "num_heads": 2, "mlp_dim": 16, "channels": 1}


def recipe(root, task, **options):
    data = {"train": "all[:60%]", "validation": "all[60%:]", "test": "all[60%:]", "batch_size": 4, "crops_per_image": 3}
    made = config.Data(**{"source": f"folder:{root}", **data, **options})
    return config.Recipe("x", SMALL, task=task, data=made, optim=config.Optim(epochs=1, xla=False))


@pytest.fixture
def with_masks(tmp_path):
    for part in ("images", "masks"):
        (tmp_path / "pictures" / part).mkdir(parents=True)
    random = np.random.default_rng(0)
    for i in range(5):
        mask = np.zeros((90, 130), "uint8")
        mask[10 * i : 10 * i + 30, 20:60] = 1
        Image.fromarray(mask).save(tmp_path / f"pictures/masks/{i}.png")
        noise = random.integers(0, 50, mask.shape, "uint8")
        Image.fromarray(150 * mask + noise).save(tmp_path / f"pictures/images/{i}.png")
    return tmp_path / "pictures"


SEGMENT = config.Segment(classes=("background", "square"))


def test_fit_and_evaluate_on_crops(with_masks, tmp_path):
    made = recipe(with_masks, SEGMENT, crops_balanced=True)
    _, history = keras_vit.fit(made, tmp_path / "run", verbose=0)
    assert history["epoch"] == [0]
    _, train, validation = keras_vit.training.fit.on_data(made)
    assert (len(train), len(validation)) == (9, 6)
    scores = next(iter(keras_vit.evaluate(tmp_path / "run").values()))
    assert 0 <= scores["mean_iou"] <= 1
    source = keras_vit.runs.results.source_of(keras_vit.load_run(tmp_path / "run"), None, None)
    assert len(source) == 2 * 3 * 5  # every crop of the grid


def test_arrays_are_cut_too(with_masks, tmp_path):
    source = sources.load(recipe(with_masks, SEGMENT).data, "all", SEGMENT.targets)
    images = np.stack([np.asarray(Image.open(path)) for path in source.images])[..., None]
    masks = np.stack([np.asarray(Image.open(path)) for path in source.targets["segmentation_masks"]])
    made = recipe(with_masks, SEGMENT)
    pairs = (images[:3], masks[:3]), (images[3:], masks[3:])
    train, validation = keras_vit.datasets(made, train=pairs[0], validation=pairs[1])
    assert [x.shape for x, _ in train] == [(4, 32, 32, 1)] * 2
    assert sum(len(x) for x, _ in validation) == 6
    keras_vit.fit(made, tmp_path / "run", train=pairs[0], validation=pairs[1], verbose=0)
    scores = next(iter(keras_vit.evaluate(tmp_path / "run", arrays=pairs[1]).values()))
    assert 0 <= scores["mean_iou"] <= 1


def test_without_crops_nothing_is_changed(with_masks):
    made = dataclasses.replace(recipe(with_masks, SEGMENT), data=config.Data(source=f"folder:{with_masks}"))
    source = sources.load(made.data, "all", SEGMENT.targets)
    assert cutting.crops(source, SEGMENT, made, (32, 32, 1)) is source
    assert cutting.grid(source, made, (32, 32, 1)) is source


def test_more_objects_in_a_crop_than_the_model_finds_are_refused(tmp_path):
    boxes = np.zeros((4, 9, 5), "float32")
    boxes[:, :, :4] = np.linspace(0, 0.1, 9)[:, None] + (0, 0, 0.05, 0.05)
    images = np.zeros((4, 100, 100, 1), "uint8")
    task = config.Detect(classes=("a",), most=3)
    made = recipe(tmp_path, task)
    train = Source(images, {"bounding_boxes": boxes}, ("a",))
    with pytest.raises(ValueError, match=r"most must be the objects of a crop or more. Received: most=3, and a crop t"):
        keras_vit.datasets(made, train=train, validation=train.take(slice(1)))
    with pytest.raises(ValueError, match=r"most must be the objects of an image or more. Received: most=3"):
        task.on(cutting.grid(train, made, (32, 32, 1), every=True), {})


def rasters(folder, kind, source):
    """Writes the pictures of a folder, of three bands of 16 bits, in another format; returns the new folder."""
    tifffile = pytest.importorskip("tifffile")
    for part in ("images", "masks"):
        (folder / part).mkdir(parents=True)
    for path in sorted((source / "images").iterdir()):
        pixels = np.asarray(Image.open(path)).astype("uint16")
        values = np.stack([pixels * 100, pixels[::-1] * 50, 200 * pixels], axis=-1)
        mask = np.asarray(Image.open(source / "masks" / path.name))
        if kind == "npy":
            np.save(folder / "images" / f"{path.stem}.npy", values)
            np.save(folder / "masks" / f"{path.stem}.npy", mask)
        else:
            settings = {"tiles": {"tile": (16, 32)}, "strips": {"rowsperstrip": 7, "compression": "lzw"}, "plain": {}}
            for part, one in (("images", values), ("masks", mask)):
                more = {"photometric": "rgb" if part == "images" else "minisblack", **settings[kind]}
                tifffile.imwrite(folder / part / f"{path.stem}.tif", one, **more)
    return folder


@pytest.mark.parametrize("kind", ["plain", "tiles", "strips", "npy"])
def test_pictures_of_16_bits_give_the_same_crops_in_every_format(with_masks, tmp_path, kind):
    folders = [rasters(tmp_path / f"{i}_{name}", name, with_masks) for i, name in enumerate(("plain", kind))]
    batches = []
    for folder in folders:
        made = recipe(folder, SEGMENT, value_range="minmax", crops_balanced=True)
        made = dataclasses.replace(made, model={**SMALL, "channels": 3}, augment=config.Augment(flip=True))
        train, validation = keras_vit.datasets(made)
        batches.append([*train.as_numpy_iterator(), *validation.as_numpy_iterator()])
    for (x, y), (a, b) in zip(*batches):
        np.testing.assert_array_equal(x, a)
        np.testing.assert_array_equal(y, b)
    assert max(x.max() for x, _ in batches[0]) > 20_000  # in the numbers of the files
    keras_vit.fit(made, tmp_path / "run", verbose=0)
    scores = next(iter(keras_vit.evaluate(tmp_path / "run").values()))
    assert 0 <= scores["mean_iou"] <= 1


def test_pixels_without_data_have_neighbors_of_their_crop(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    values = np.arange(4096, dtype="float32").reshape(64, 64)
    values[20:24, 20:24] = np.nan
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tifffile.imwrite(tmp_path / name / "0.tif", values, tile=(16, 16))
    made = recipe(tmp_path, config.Classify(), train="all", validation="all", value_range=(0, 4096), no_data="nan")
    with pytest.warns(UserWarning, match="validation examples are training examples"):
        train, _ = keras_vit.datasets(dataclasses.replace(made, model={**SMALL, "num_classes": 2}))
    for x, _ in train.as_numpy_iterator():
        assert np.isfinite(x).all() and x.min() >= 0 and x.max() <= 4096
        steps = np.diff(x[..., 0], axis=2)
        assert np.abs(steps).max() <= 64 * 4  # of the nearest pixel that is known


def test_whole_pictures_are_scored_with_tiles(with_masks, tmp_path):
    folders = with_masks, rasters(tmp_path / "tiff", "tiles", with_masks)
    for folder in folders:
        deep = {"value_range": "minmax"} if folder is folders[1] else {}
        made = recipe(folder, SEGMENT, **deep)
        made = dataclasses.replace(made, model={**SMALL, "channels": 3})
        keras_vit.fit(made, tmp_path / f"run{len(deep)}", verbose=0)
        run = keras_vit.load_run(tmp_path / f"run{len(deep)}")
        crops = next(iter(keras_vit.evaluate(run).values()))
        whole = next(iter(keras_vit.evaluate(run, tiles=True).values()))
        assert crops.keys() == whole.keys() and 0 <= whole["mean_iou"] <= 1
        small = keras_vit.runs.whole_pictures.in_tiles(run, True)
        assert len(keras_vit.runs.results.source_of(small, None, None)) == 2


def test_pictures_that_are_too_large_to_be_scored_whole(with_masks, monkeypatch):
    made = recipe(with_masks, SEGMENT)
    source = sources.load(made.data, "all", SEGMENT.targets)
    assert cutting.whole(source, made).targets["segmentation_masks"].tolist() == [*source.targets["segmentation_masks"]]
    monkeypatch.setattr(cutting, "MOST_PIXELS", 90 * 130 - 1)
    with pytest.raises(ValueError, match=r"to be scored whole; Segment and Detect score crops with"):
        cutting.whole(source, made)
