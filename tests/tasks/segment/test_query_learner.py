import keras
import numpy as np
import pytest

from keras_vit.tasks.segment.query_learner import QueryLearner
from keras_vit.tasks.segment.query_loss import QueryLoss
from tests import masks
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend


def images(count=2):
    return np.random.default_rng(1).uniform(0, 255, (count, 16, 16, 3)).astype("float32")


def test_the_last_stage_is_the_model_itself_once_masks_have_ended():
    model = masks.build(last=2)
    learner = QueryLearner(model, steps=4)
    own = keras.ops.convert_to_numpy(model(images()))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(learner(images()))[:, 0], own, atol=1e-5)
    masked = keras.ops.convert_to_numpy(learner(images(), training=True))
    assert masked.shape == (2, 3, 4, 3 + 1 + 64) and learner.output_shape == (None, 1, 4, 68)
    assert np.abs(masked[:, -1] - own).max() > 1e-4  # queries saw their own masks only
    learner.step.assign(4)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(learner(images(), training=True))[:, -1], own, atol=1e-5)
    plain = keras.ops.convert_to_numpy(QueryLearner(model)(images(), training=True))
    np.testing.assert_allclose(plain[:, -1], own, atol=1e-5)


def test_attention_inside_masks_ends_block_by_block():
    learner = QueryLearner(masks.build(last=2), steps=400)  # parts of 100 steps
    shares = []
    for step in (0, 100, 150, 200, 250, 300, 400):
        learner.step.assign(step)
        shares.append([float(learner.share(block)) for block in (0, 1)])
    half = 0.5**0.9
    np.testing.assert_allclose(shares, [(1, 1), (1, 1), (half, 1), (0, 1), (0, half), (0, 0), (0, 0)], atol=1e-6)


def test_a_query_sees_the_patches_in_its_mask():
    model = masks.build(last=1)
    learner = QueryLearner(model, steps=10)
    outputs = np.zeros((1, 4, 3 + 1 + 64), "float32")
    drawn = outputs[0, :, 4:].reshape(4, 8, 8)  # twice the grid of 4 x 4
    drawn[:] = -1
    drawn[1, :2, :2] = 1  # the first patch
    drawn[2, 2:6, 7] = 4  # one of two cells of the patches at the right: the mean is above 0
    seen = keras.ops.convert_to_numpy(learner._mask(keras.ops.convert_to_tensor(outputs), 0, 22))[0]
    assert seen.shape == (22, 22) and seen[4:].all() and seen[:, :6].all()
    patches = seen[:4, 6:].reshape(4, 4, 4)
    assert not patches[0].any() and not patches[3].any()
    np.testing.assert_array_equal(np.argwhere(patches[1]), [(0, 0)])
    np.testing.assert_array_equal(np.argwhere(patches[2]), [(1, 3), (2, 3)])


def test_its_own_variables_have_the_same_names_in_every_process():
    for _ in range(2):
        learner = QueryLearner(masks.build(), steps=3)
        own = {id(variable) for variable in learner.model.variables}
        paths = [variable.path for variable in learner.variables if id(variable) not in own]
        assert paths == ["learner/step", "seeds/seed_generator_state"]


@slow_on_jax
def test_it_counts_its_steps_and_is_saved(tmp_path):
    learner = QueryLearner(masks.build(), steps=8)
    learner.compile("sgd", loss=QueryLoss(3))
    learner.fit(images(4), np.full((4, 16, 16, 1), 1001), batch_size=2, epochs=2, verbose=0)
    assert int(learner.step) == 4
    learner.save(tmp_path / "learner.keras")
    again = keras.models.load_model(tmp_path / "learner.keras")
    assert again.steps == 8 and int(again.step) == 4
    np.testing.assert_allclose(np.asarray(again(images())), np.asarray(learner(images())), atol=1e-6)
