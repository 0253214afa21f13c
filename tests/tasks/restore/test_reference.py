import keras
import numpy as np
import pytest

from keras_vit.models.inputs import inputs_of
from keras_vit.tasks import Restore
from keras_vit.tasks.restore import reference
from keras_vit.utils.tiles import tiled
from tests.marks import EAGERLY, slow_on_jax
from tests.tasks.restore.test_restore import recipe

pytestmark = pytest.mark.backend

TASK = Restore(scale=2, reference=True)
SMALL = dict(variant="mu/4", stem=((8, 1),), patch_size=4, image_size=(8, 12), depth=1, dropout=0.1)
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 8, 12, 3)).astype("float32")
GIVEN = {"images": IMAGES, "references": RNG.integers(0, 256, (3, 16, 24, 3)).astype("float32")}


@pytest.mark.parametrize(
    "task, message",
    [
        (Restore(gray=True, reference=True), "Restore.reference is for one job, .* Received: gray=True"),
        (Restore(jobs=("x2", "x3"), reference=True), r"Restore.reference is for one job, .* Received: jobs=\('x2'"),
        (Restore(reference=True), "needs what to undo"),
    ],
)
def test_other_options_are_refused(task, message):
    with pytest.raises(ValueError, match=message):
        task.model(**SMALL)
    with pytest.raises(ValueError, match=message):
        task.check(recipe(task, SMALL))


def test_what_the_model_needs():
    with pytest.raises(ValueError, match="Restore.reference needs a stem .* strides of 1. Received: a map of 4 x 6 of"):
        TASK.model(**{**SMALL, "stem": ((8, 2),), "patch_size": 2})
    assert TASK.data_shape((8, 12, 3)) == (40, 48, 3) and TASK.inputs == ("images", "references")
    assert Restore(scale=5, reference=True).margin == 15 and Restore(scale=2).margin == 0
    assert not Restore(scale=2).extras and Restore(scale=2).beside is None


@slow_on_jax
def test_starts_as_the_model_without_and_learns(tmp_path):
    plain = Restore(scale=2).model(**SMALL)
    for variable in plain.weights:
        if variable.path.startswith("head/"):
            variable.assign(RNG.normal(size=variable.shape, scale=0.1))
    plain.save(tmp_path / "plain.keras")
    model = TASK.model(**SMALL, weights=tmp_path / "plain.keras", head="require")
    np.testing.assert_allclose(np.asarray(model(GIVEN)), np.asarray(plain(IMAGES)), atol=1e-3)
    assert inputs_of(model) == {"images": (8, 12, 3), "references": (16, 24, 3)}
    model.compile(keras.optimizers.Adam(1e-2), **TASK.compiled(None), run_eagerly=EAGERLY)
    logs = [model.train_on_batch(GIVEN, GIVEN["references"], return_dict=True) for _ in range(4)]
    assert logs[3]["loss"] < logs[0]["loss"]
    other = {**GIVEN, "references": GIVEN["references"][::-1]}
    assert np.abs(np.asarray(model(GIVEN)) - np.asarray(model(other))).max() > 0.01
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(GIVEN)), np.asarray(model(GIVEN)))
    started = TASK.model(**SMALL, weights=tmp_path / "model.keras", head="require")
    np.testing.assert_allclose(np.asarray(started(GIVEN)), np.asarray(model(GIVEN)), atol=1e-3)


def test_references_are_made_of_the_image():
    tf = pytest.importorskip("tensorflow")
    smooth = np.kron(RNG.integers(0, 256, (4, 10, 12, 3)), np.ones((1, 4, 4, 1))).astype("float32")
    made = TASK.prepare({"images": tf.constant(smooth)}, tf.constant([3, 4], "int64"))
    assert [made[name].shape for name in ("images", "references", "originals")] == [
        (4, 8, 12, 3),
        (4, 16, 24, 3),
        (4, 16, 24, 3),
    ]
    np.testing.assert_array_equal(made["originals"], smooth[:, 12:-12, 12:-12])
    again = TASK.prepare({"images": tf.constant(smooth)}, tf.constant([3, 4], "int64"))
    np.testing.assert_array_equal(made["references"], again["references"])
    x, _ = TASK.batch(made, None, tf.constant([3, 4], "int64"))
    assert x.keys() == {"images", "references"}
    np.testing.assert_array_equal(x["references"], made["references"])


def image_and_reference(rows, columns):
    """A picture of soft spots, its shrunk image, and a reference that is moved by 6 rows and 10 columns."""
    from PIL import Image

    picture = Image.fromarray(RNG.integers(0, 256, (rows // 6, columns // 6, 3), "uint8"))
    whole = np.asarray(picture.resize((columns + 20, rows + 20), Image.Resampling.BICUBIC))
    sharp, reference = whole[10 : 10 + rows, 10 : 10 + columns], whole[4 : 4 + rows, :columns]
    small = sharp.reshape(rows // 2, 2, columns // 2, 2, 3).mean((1, 3))
    return small.astype("float32"), sharp, reference


def test_each_tile_gets_the_part_that_is_like_it():
    image, sharp, moved = image_and_reference(120, 140)
    part = TASK.beside((20, 20, 3))(image, {"references": moved[None]})
    for y, x in ((20, 20), (0, 10), (36, 44)):
        found = part(y, x)["references"]
        assert found.shape == (1, 40, 40, 3)
        np.testing.assert_array_equal(found[0], sharp[2 * y : 2 * y + 40, 2 * x : 2 * x + 40])


def test_a_large_reference_is_searched_in_little_memory(monkeypatch):
    image, sharp, moved = image_and_reference(240, 280)
    monkeypatch.setattr(reference, "SEARCHED", 2**11)
    part = TASK.beside((20, 20, 3))(image, {"references": moved[None]})
    for y, x in ((20, 20), (60, 80)):
        found, wanted = part(y, x)["references"][0], sharp[2 * y : 2 * y + 40, 2 * x : 2 * x + 40].astype("float32")
        shifts = [np.abs(np.roll(found, (i, j), (0, 1)) - wanted)[12:-12, 12:-12].mean() for i in R for j in R]
        assert min(shifts) < 2  # it lies within a few pixels


R = range(-8, 9)


def test_a_small_reference_is_continued_and_a_flat_one_harms_nothing():
    for given in (np.full((1, 5, 7, 3), 9, "uint8"), np.zeros((1, 300, 30, 3), "uint8")):
        function = tiled(lambda each: each["references"][:, ::1, ::1], (8, 12, 3), beside=TASK.beside((8, 12, 3)))
        found = function({"images": np.zeros((1, 9, 30, 3), "uint8"), "references": given})
        assert found.shape == (1, 18, 60, 3) and np.ptp(found) < 1e-4


@pytest.mark.parametrize("scale", [2, 1])
def test_two_images_keep_their_names_in_openvino(tmp_path, scale):
    pytest.importorskip("openvino")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("OpenVINO's IR is written by TensorFlow")
    from keras_vit import export_openvino

    model = Restore(scale=scale, noise=5.0, reference=True).model(**SMALL)
    for variable in model.weights:
        if variable.path.startswith(("texture_conv1", "head/pixels")):
            variable.assign(RNG.normal(size=variable.shape, scale=0.1))
    assert export_openvino(model, tmp_path / "model.xml").max_abs_diff < 0.01
