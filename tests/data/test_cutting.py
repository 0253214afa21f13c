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
