import dataclasses

import keras
import numpy as np
import pytest

from keras_vit.layers import JobInput
from keras_vit.models.anatomy import blocks
from keras_vit.models.inputs import inputs_of
from keras_vit.tasks import Restore
from keras_vit.tasks.restore import jobs
from keras_vit.traits import Traits
from tests.marks import EAGERLY, slow_on_jax
from tests.tasks.restore.test_restore import recipe

pytestmark = pytest.mark.backend

NAMES = ("x2", "x3", "denoise25", "jpeg40", "inpaint50")
TASK = Restore(jobs=NAMES, head_depth=1)
SMALL = dict(variant="mu/4", stem=((8, 1),), patch_size=4, image_size=(12, 24), depth=1, dropout=0.1)
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 12, 24, 3)).astype("float32")
GIVEN = {"images": IMAGES, "labels": np.arange(5, dtype="int32")}


@pytest.fixture(scope="module")
def model():
    """A model whose every weight counts."""
    made = TASK.model(**SMALL)
    for variable in made.weights:
        if variable.path.startswith("job_"):
            variable.assign(RNG.normal(size=variable.shape, scale=0.1))
    return made


def test_names_say_what_is_undone():
    assert jobs.settings_of("x3") == {"scale": 3} and jobs.settings_of("denoise2.5") == {"noise": 2.5}
    assert jobs.settings_of("x2+jpeg40") == {"scale": 2, "jpeg": 40} and jobs.settings_of("inpaint20") == {"mask": 0.2}
    assert [one.scale for one in TASK.singles()] == [2, 3, 1, 1, 1] and not TASK.single("x2").jobs
    for bad in ("x", "x2.5", "blur3", "x2+x3", "x2+", ""):
        with pytest.raises(ValueError, match="'xN', 'denoiseN', 'jpegN' or 'inpaintN'"):
            jobs.settings_of(bad)


@pytest.mark.parametrize(
    "task, message",
    [
        (Restore(jobs=("x2",)), r"two names or more, .* Received: jobs=\('x2',\)"),
        (Restore(jobs=("x2", "x2")), "each once"),
        (Restore(jobs=NAMES, scale=2), "in place of scale, .* scale=2"),
        (Restore(jobs=NAMES, gray=True), "gray=True"),
        (Restore(jobs=("x2", "jpeg101")), "Restore.jpeg must be at least 1 and at most 100. Received: 101"),
        (Restore(jobs=("x2", "denoise0")), "needs what to undo"),
        (Restore(jobs=("x2", "sharpen")), "Received: 'sharpen'"),
    ],
)
def test_other_jobs_are_refused(task, message):
    with pytest.raises(ValueError, match=message):
        task.model(**SMALL)
    with pytest.raises(ValueError, match=message):
        task.check(recipe(task, SMALL))


def test_what_the_model_needs():
    TASK.check(recipe(TASK, SMALL))
    with pytest.raises(ValueError, match="image_size must be a multiple of 6, .* Received: 8 x 24"):
        TASK.check(recipe(TASK, {**SMALL, "image_size": (8, 24)}))
    with pytest.raises(ValueError, match="strides of 1. Received: a map of 6 x 12 of 12 x 24 pixels"):
        TASK.model(**{**SMALL, "stem": ((8, 2),), "patch_size": 2})


@slow_on_jax
def test_starts_as_the_image_and_learns(tmp_path):
    task = Restore(jobs=("x2", "denoise25"))
    model, given = task.model(**SMALL), {"images": IMAGES, "labels": GIVEN["labels"] % 2}
    np.testing.assert_allclose(np.asarray(model(given)), IMAGES, atol=1e-3)
    assert inputs_of(model) == {"images": (12, 24, 3), "labels": ()} and Traits(model).words[1] == 2
    model.compile(keras.optimizers.Adam(1e-2), **task.compiled(None), run_eagerly=EAGERLY)
    logs = [model.train_on_batch(given, IMAGES * 0.5 + 60, return_dict=True) for _ in range(3)]
    assert logs[2]["loss"] < logs[0]["loss"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(given)), np.asarray(model(given)))
    started = task.model(**SMALL, weights=tmp_path / "model.keras", head="require")
    np.testing.assert_allclose(np.asarray(started(given)), np.asarray(model(given)), atol=1e-3)


def test_dropout_is_drawn_in_training(model):
    a, b = (np.asarray(model(GIVEN, training=True)) for _ in range(2))
    assert np.abs(a - b).max() > 1e-3
    np.testing.assert_array_equal(np.asarray(model(GIVEN)), np.asarray(model(GIVEN)))


def test_every_image_of_a_batch_gets_its_own_job(model):
    mixed = np.asarray(model(GIVEN))
    for i in range(5):
        alone = np.asarray(model({"images": IMAGES[i : i + 1], "labels": np.array([i], "int32")}))
        np.testing.assert_allclose(mixed[i : i + 1], alone, atol=1e-3)
    same = {"images": IMAGES[:1].repeat(5, 0), "labels": GIVEN["labels"]}
    every = np.asarray(model(same))
    assert min(np.abs(every[i] - every[j]).max() for i in range(5) for j in range(i)) > 0.1


def test_the_model_of_one_job_has_the_weights(model):
    tasks = dict(zip(NAMES, TASK.singles()))
    for job in ("x3", "denoise25"):
        one = jobs.single(model, NAMES, job)
        scale = tasks[job].scale
        small = IMAGES[:, : 12 // scale, : 24 // scale]
        assert one.output_shape == (None, 12, 24, 3) and inputs_of(one) == {"images": small.shape[1:]}
        pixels, labels = JobInput(job=NAMES.index(job), scale=scale)(small)
        wanted = model({"images": pixels, "labels": labels})
        np.testing.assert_allclose(np.asarray(one(small)), np.asarray(wanted), atol=0.05)
        assert Traits(one).gives == "image" and {v.path for v in one.weights} == {v.path for v in model.weights}
        assert len(blocks(one)) == len(blocks(model)) == 1  # called once


def test_each_image_is_degraded_as_its_job_says():
    tf = pytest.importorskip("tensorflow")
    images = tf.constant(IMAGES)
    made = TASK.prepare({"images": images, "labels": tf.range(5)}, tf.constant([3, 4], "int64"))
    x, y = TASK.batch(made, None, (3, 4))
    assert x.keys() == {"images", "labels"}
    np.testing.assert_array_equal(y, IMAGES)
    for i, task in enumerate(TASK.singles()):
        seed = tf.random.fold_in(tf.constant([3, 4], "int64"), 4 + i)
        small = task.prepare({"images": images[i : i + 1]}, seed)["images"][0].numpy()
        wanted = np.clip(np.rint(task._enlarged(small)), 0, 255)
        np.testing.assert_allclose(x["images"][i], wanted, atol=1.01 if task.scale > 1 else 0)  # where halves round
        assert np.abs(x["images"][i] - IMAGES[i]).max() > 5
    cut = TASK.prepare({"images": images[:1, :11, :23], "labels": tf.constant([0])}, tf.constant([3, 4], "int64"))
    assert cut["images"].shape == cut["originals"].shape == (1, 6, 18, 3)


def test_jobs_are_drawn_from_the_seed_alone():
    tf = pytest.importorskip("tensorflow")
    images, task = tf.fill((30, 6, 6, 3), 99.0), Restore(jobs=("x2", "denoise25", "denoise50"))
    made = [task.prepare({"images": images}, tf.constant([0, seed], "int64")) for seed in (1, 1, 2)]
    for name in ("images", "labels"):
        np.testing.assert_array_equal(made[0][name], made[1][name])
    drawn = [each["labels"].numpy() for each in made]
    assert (drawn[0] != drawn[2]).any() and np.bincount(drawn[0]).min() > 3 and len(np.bincount(drawn[0])) == 3
    deviations = made[0]["images"].numpy().std(axis=(1, 2, 3))
    for job, (low, high) in enumerate([(0, 0.1), (18, 33), (35, 60)]):
        assert low <= deviations[drawn[0] == job].min() and deviations[drawn[0] == job].max() < high


def test_in_evaluation_each_image_is_given_to_all_jobs():
    pytest.importorskip("tensorflow")
    from keras_vit.data.memory import Source

    source = Source(np.arange(2, dtype="uint8").reshape(2, 1, 1, 1), {})
    assert TASK.read(source, training=True) is source
    read = TASK.read(source)
    assert read.images.ravel().tolist() == [0] * 5 + [1] * 5 and read.labels.tolist() == [0, 1, 2, 3, 4] * 2


def test_scores_are_by_job():
    pytest.importorskip("skimage")
    tally = TASK.tally()
    examples = {**GIVEN, "originals": IMAGES}
    outputs = IMAGES.copy()
    outputs[2] += 5.0
    tally.add({**examples, "images": IMAGES + 1}, outputs)
    result = tally.result()
    inside = np.clip(IMAGES[2] + 5, 0, 255)
    wanted = 10 * np.log10(255**2 / np.mean((inside - IMAGES[2]) ** 2))
    assert result["psnr denoise25"] == pytest.approx(wanted) and result["psnr x2"] == result["psnr jpeg40"] == 100
    assert result["psnr"] == pytest.approx((400 + wanted) / 5) and result["input_psnr x3"] < 100
    assert TASK.titled("input_psnr x3") == ("PSNR of the input of x3", "dB")
    assert [(one.border, one.of_luma) for one in tally.tallies.values()][:3] == [(2, True), (3, True), (0, False)]
    said = TASK.caption(outputs[2], {name: values[2] for name, values in examples.items()})
    assert said == f"denoise25: {wanted:.2f} dB, without the model 100.00 dB"
    assert dataclasses.replace(TASK, jobs=()).inputs == ("images",)


def test_heads_are_loaded_by_their_jobs(model, tmp_path):
    model.save(tmp_path / "m.keras")

    def head(task):
        made = task.model(**SMALL, weights=str(tmp_path / "m.keras"))
        return np.concatenate([np.ravel(w) for w in made.weights if w.path.startswith("job_")])

    mine = np.concatenate([np.ravel(w) for w in model.weights if w.path.startswith("job_")])
    np.testing.assert_array_equal(head(TASK), mine)
    other = dataclasses.replace(TASK, jobs=(NAMES[1], NAMES[0], *NAMES[2:]))
    assert not np.array_equal(head(other), mine)
    with pytest.raises(ValueError, match="with this head and these classes"):
        other.model(**SMALL, weights=str(tmp_path / "m.keras"), head="require")
