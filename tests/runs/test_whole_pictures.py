"""Pictures larger than the model, from files to files: predict, evaluate, export, and the page's NumPy."""

import json
import pathlib
import re

import keras
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.runs import predictions, results, whole_pictures
from keras_vit.tasks.in_tiles import at_full_size, with_tiles
from keras_vit.utils import tiles
from tests import owls
from tests.tasks.detect.test_whole_pictures import SIZE as FRAME
from tests.tasks.detect.test_whole_pictures import detector, scene
from tests.towers import WORDS

RNG = np.random.default_rng(0)
CLASSES = ("background", "nucleus")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "large_pictures.md"


@pytest.fixture(scope="module")
def segmenter():
    """A small model of masks with random weights."""
    task = config.Segment(classes=CLASSES)
    sizes = dict(width=16, depth=1, num_heads=2, mlp_dim=32, patch_size=8, pooling="none")
    model = task.model(variant=None, image_size=(32, 48), position="sincos2d", **sizes)
    rng = np.random.default_rng(1)
    model.set_weights([value + 0.3 * rng.normal(size=value.shape) for value in model.get_weights()])
    model.get_layer("rescale").metadata["labels"] = list(CLASSES)
    return model


@pytest.fixture
def picture():
    return RNG.integers(0, 256, (9, 14, 3), "uint8").repeat(13, 0).repeat(13, 1)


def test_files_of_all_formats_have_the_same_mask(segmenter, picture, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    Image.fromarray(picture).save(tmp_path / "a.png")
    np.save(tmp_path / "b.npy", picture)
    tifffile.imwrite(tmp_path / "c.tif", picture, tile=(16, 16), photometric="rgb")
    files = [tmp_path / name for name in ("a.png", "b.npy", "c.tif")]
    segmenter.save(tmp_path / "model.keras")
    answers = predictions.predict(tmp_path / "model.keras", files, to=tmp_path / "to", tiles=True)
    found = [np.asarray(Image.open(tmp_path / "to" / f"{file.stem}.png")) for file in files]
    assert found[0].shape == picture.shape[:2] and len(np.unique(found[0])) == 2
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all() and answers[0] == answers[1] == answers[2]
    assert dict(answers[0])["nucleus"] == pytest.approx((found[0] == 1).mean())
    assert dict(predictions.predict(segmenter, files[:1])[0]) != dict(answers[0])  # shrunk


def test_a_large_picture_s_mask_is_written_as_it_is_computed(segmenter, picture, tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile")
    picture = np.concatenate([picture, picture[::-1], picture], 1)
    tifffile.imwrite(tmp_path / "a.tif", picture, tile=(16, 16), photometric="rgb")
    (answer,) = predictions.predict(segmenter, [tmp_path / "a.tif"], to=tmp_path / "small", tiles=True)
    for module in (tiles, whole_pictures):
        monkeypatch.setattr(module, "MOST_PIXELS", 1000)
    (large,) = predictions.predict(segmenter, [tmp_path / "a.tif"], to=tmp_path / "large", tiles=True)
    assert large == answer == predictions.predict(segmenter, [tmp_path / "a.tif"], tiles=True)[0]
    mask = tifffile.imread(tmp_path / "large" / "a.tif")
    np.testing.assert_array_equal(mask, np.asarray(Image.open(tmp_path / "small" / "a.png")))


def test_a_large_picture_of_pages_is_written_as_it_is_computed_too(segmenter, picture, tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile")
    monkeypatch.setitem(segmenter.get_layer("rescale").metadata, "bands", {"count": 3, "pages": "bands"})
    tifffile.imwrite(tmp_path / "a.tif", picture.transpose(2, 0, 1), photometric="minisblack")
    predictions.predict(segmenter, [tmp_path / "a.tif"], to=tmp_path / "small", tiles=True)
    for module in (tiles, whole_pictures):
        monkeypatch.setattr(module, "MOST_PIXELS", 1000)
    predictions.predict(segmenter, [tmp_path / "a.tif"], to=tmp_path / "large", tiles=True)
    mask = tifffile.imread(tmp_path / "large" / "a.tif")
    np.testing.assert_array_equal(mask, np.asarray(Image.open(tmp_path / "small" / "a.png")))


@pytest.mark.parametrize("value_range, message", [((0, 1), "from 0 to 1. Received: "), (None, "told")])
def test_a_model_s_range_holds_in_tiles(picture, tmp_path, value_range, message):
    """A file is refused by windows where it is refused as a whole: numbers outside of a range that is not clipped."""
    inputs = keras.Input((32, 48, 3))
    rescaled = inputs if value_range is None else keras_vit.Rescale(value_range=value_range)(inputs)
    model = keras.Model(inputs, keras.layers.Conv2D(2, 1)(rescaled))
    np.save(tmp_path / "a.npy", picture.astype("float32"))
    for windows in (True, False):
        with pytest.raises(ValueError, match=message):
            predictions.predict(model, tmp_path / "a.npy", tiles=windows)


def test_what_is_interrupted_resumes_and_a_damaged_file_is_left_out(segmenter, picture, tmp_path):
    for name in "abc":
        Image.fromarray(picture).save(tmp_path / f"{name}.png")
    files, to = [tmp_path / f"{name}.png" for name in "abc"], tmp_path / "to"
    next(predictions.predictions(segmenter, files[1:], to=to, tiles=True))  # and is stopped
    before = (to / "b.png").stat().st_mtime_ns
    with pytest.raises(FileExistsError, match="continue what an interrupted call left: resume"):
        predictions.predict(segmenter, files, to=to, tiles=True)
    other = keras.models.clone_model(segmenter)
    for model, tiling, what in ((other, True, "another model"), (segmenter, {"overlap": 0}, "other options")):
        with pytest.raises(ValueError, match=f"Received: to='.*to', which has files of {what}"):
            predictions.predict(model, files, to=to, tiles=tiling, resume=True)
    answers = predictions.predict(segmenter, files, to=to, tiles=True, resume=True)
    assert [answer is None for answer in answers] == [False, True, False]
    assert (to / "b.png").stat().st_mtime_ns == before and len(list(to.iterdir())) == 3
    with pytest.raises(ValueError, match="which no interrupted call left"):
        predictions.predict(segmenter, files, to=to, tiles=True, resume=True)
    for options in ({}, {"to": to, "json": tmp_path / "a.json"}):
        with pytest.raises(ValueError, match="it needs `to`, and no table"):
            predictions.predict(segmenter, files, resume=True, **options)


def test_windows_that_cannot_be_read_are_the_fault_of_their_file(segmenter, picture, tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile")
    tifffile.imwrite(tmp_path / "a.tif", picture, tile=(16, 16), photometric="rgb", compression="zlib")
    data = bytearray((tmp_path / "a.tif").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    (tmp_path / "b.tif").write_bytes(data)
    files = [tmp_path / "b.tif", tmp_path / "a.tif"]
    for most in (1000, 10**8):
        for module in (tiles, whole_pictures):
            monkeypatch.setattr(module, "MOST_PIXELS", most)
        to = tmp_path / str(most)
        (_, none, error), (_, answer, no_error) = predictions.predictions(segmenter, files, tiles=True, to=to)
        assert none is None and "b.tif" in str(error) and answer and no_error is None
        assert [path.stem for path in to.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "shape, dtype, message", [((40, 60, 2), "uint8", "3 bands"), ((40, 60, 3), "uint16", "8 bits")]
)
def test_other_bands_and_depths_are_refused(segmenter, tmp_path, shape, dtype, message):
    np.save(tmp_path / "a.npy", np.zeros(shape, dtype))
    with pytest.raises(ValueError, match=f"a.npy.* must have .*{message}"):
        predictions.predict(segmenter, tmp_path / "a.npy", tiles=True)


def test_tasks_without_tiles_say_so():
    with pytest.raises(ValueError, match="Classify does not predict in tiles"):
        predictions.predict("mnist", PAGE, tiles=True)
    with pytest.raises(ValueError, match="Restore always predicts in tiles"):
        results.evaluate("superres_x2", tiles=True)


def test_scores_are_counted_at_full_size(segmenter, picture):
    trained = keras_vit.load_run(segmenter)
    whole = at_full_size(with_tiles(trained.task, True).of_model(segmenter), trained.answering(), trained.size)
    mask = whole(picture[None])
    assert mask.shape == (1, *picture.shape[:2])
    truth = mask.copy()
    truth[:, :5] = 1 - truth[:, :5]
    tally = trained.task.tally()
    share = tally.add({"segmentation_masks": truth}, mask)
    assert 0 < share[0] < 1 and tally.result()["pixel_accuracy"] == pytest.approx(1 - 5 / picture.shape[0])
    with pytest.raises(
        ValueError, match="must have the shape that the model takes"
    ):  # of a model without a recipe, arrays have its size
        results.evaluate(segmenter, arrays=(picture[None], truth), tiles=False)
    scores = results.evaluate(segmenter, arrays=(picture[None], truth), tiles=True)
    assert next(iter(scores.values()))["pixel_accuracy"] == pytest.approx(1 - 5 / picture.shape[0])


def test_a_published_detector_of_words_finds_boxes_in_tiles(picture, tmp_path):
    """Its rule pads a photo to a square; tiles are as they are, and boxes in pixels of the picture."""
    model = keras_vit.zero_shot_detector(owls.shared(), ["cat", "dog"], WORDS, most=4, threshold=1e-4)
    Image.fromarray(picture).save(tmp_path / "a.png")
    predictions.predict(model, tmp_path / "a.png", tiles=True, json=tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    boxes = np.array([row["bbox"] for row in found])
    assert len(boxes) > 4 and boxes.min() >= 0 and (boxes[:, 0] + boxes[:, 2]).max() <= picture.shape[1] + 0.01
    assert (boxes[:, 1] + boxes[:, 3]).max() <= picture.shape[0] + 0.01
    assert boxes[:, 0].max() > model.input_shape[2] and {row["category"] for row in found} <= {"cat", "dog"}


def test_a_run_keeps_its_tiles(tmp_path):
    """It is trained on crops of larger pictures, and scored, predicted and reported whole."""
    sizes = dict(variant=None, width=16, depth=1, num_heads=2, mlp_dim=32, patch_size=8, image_size=(16, 24))
    recipe = config.Recipe(
        name="whole",
        task=config.Segment(classes=CLASSES, tiles={"overlap": 0.5}),
        model={**sizes, "position": "sincos2d", "pooling": "none"},
        data=config.Data(source="", batch_size=4),
        augment=config.Augment(crop="inception"),
        optim=config.Optim(epochs=1, xla=False),
    )
    images = RNG.integers(0, 256, (8, 40, 50, 3), "uint8")
    arrays = images, (images[..., 0] > 128).astype("uint8")
    keras_vit.fit(recipe, tmp_path / "run", train=arrays, validation=arrays)
    trained = keras_vit.load_run(tmp_path / "run")
    assert trained.recipe.task.tiles == {"overlap": 0.5} and trained.task.tiling["step"] == 8
    (scores,) = results.evaluate(trained, arrays=arrays).values()
    tally, view = trained.task.tally(), trained.viewer()
    for image, mask in zip(*arrays, strict=True):
        tally.add({"segmentation_masks": mask[None]}, view(image[None]))
    assert scores == tally.result()
    Image.fromarray(images[0]).save(tmp_path / "a.png")
    predictions.predict(trained, tmp_path / "a.png", to=tmp_path / "to")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "to" / "a.png")), view(images[:1])[0])


def on_the_page():
    names = {}
    for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), names)
    return names


@pytest.mark.parametrize("overlap", [0.25, 0.5, 0])
def test_the_page_s_numpy_makes_the_same_mask(segmenter, picture, overlap, tmp_path):
    model = keras.models.clone_model(segmenter)
    model.set_weights(segmenter.get_weights())
    trained = whole_pictures.in_tiles(keras_vit.load_run(model), {"overlap": overlap})
    whole_pictures.note_tiles(trained)
    from keras_vit.export.prepare import facts

    said = json.loads(json.dumps(facts(trained.about, None)["tiles"]))
    assert said.keys() == {"size", "overlap", "step", "join"} and said["size"] == [32, 48] and said["step"] == 8
    said.pop("join")
    for part in (picture, picture[:20, :30]):
        mask = on_the_page()["mask_of"](trained.answering(), part, **said)
        whole = trained.viewer()(part[None])[0]
        assert (mask == whole).mean() > 0.999  # of two classes that are all but equal, rounding decides


@pytest.mark.parametrize("overlap", [0.25, 0.5])
def test_the_page_s_numpy_finds_the_same_boxes(overlap):
    picture, boxes = scene()
    task = with_tiles(config.Detect(classes=("a", "b"), most=6), {"overlap": overlap, "step": 8})
    picture[0, 90:94, 60:] = 0  # what is larger than the overlap is put together by `predict` alone
    picture[0, 50:70, 80:] = 0
    (whole,) = at_full_size(task, detector, FRAME)(picture)
    edges = np.round(whole[:, :4] * (150, 260, 150, 260))
    found = on_the_page()["boxes_of"](detector, picture[0], FRAME[:2], overlap, 8)
    assert len(edges) == len(boxes)
    assert sorted(np.round(found[:, :4]).tolist()) == sorted(edges.tolist())
