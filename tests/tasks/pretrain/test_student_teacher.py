"""Self-distillation against algorithm 1 of its paper, written in NumPy."""

import math

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.tasks.pretrain import student_teacher
from keras_vit.tasks.pretrain.crops_loss import CropsLoss, metrics
from keras_vit.tasks.pretrain.student_teacher import GLOBAL, LOCAL, StudentTeacher, cross_entropy, entropy
from tests.marks import how, once, slow_on_jax

pytestmark = pytest.mark.backend
RANDOM = np.random.default_rng(0)
PROTOTYPES, STEPS = 12, 5
CROPS = {
    GLOBAL: RANDOM.integers(0, 256, (4, 2, 8, 8, 3)).astype("uint8"),
    LOCAL: RANDOM.integers(0, 256, (4, 3, 4, 4, 3)).astype("uint8"),
}


def learner(momentum=0.5, plan=(STEPS, 2, 0), **more):
    keras.utils.set_random_seed(0)
    given = {"image_size": 8, "width": 8, "depth": 2, "num_heads": 2, "patch_size": 2, "num_classes": 0, **more}
    made = StudentTeacher(vit(None, **given), PROTOTYPES, 16, 0.07, momentum)
    made.plan.assign(plan)
    return made


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x), "float64")


def logits_of(model, head, crops):
    """Returns what a model and its head say of each crop, `(batch, crops, prototypes)`."""
    return np.stack([array(head(model(np.float32(crops[:, i]), training=False))) for i in range(crops.shape[1])], 1)


def at_another_size(model, size):
    """Returns the same encoder, built for images of another size, with its positions resampled."""
    images = keras.Input((*size, 3))
    x = images
    for layer in model.layers[1:]:
        x = layer(x)
    return keras.Model(images, x)


def algorithm_1(said, seen, center, temperature):
    """Returns the loss of a batch by the paper's algorithm 1 with its equation 3, and the entropies."""
    losses, targets = [], [softmax((said[:, i] - center) / temperature) for i in range(2)]
    for i, target in enumerate(targets):
        for j in range(seen.shape[1]):
            if i != j:
                losses.append(-(target * np.log(softmax(seen[:, j] / 0.1))).sum(-1))
    both = np.stack(targets, 1)
    mean = both.mean((0, 1))
    return np.mean(losses, 0), -(both * np.log(both)).sum(-1).mean(1), -(mean * np.log(mean)).sum()


@pytest.mark.parametrize("position", ["learned", "sincos2d"])
def test_the_loss_is_that_of_the_paper(position):
    made = learner(position=position)
    made.center.assign(RANDOM.normal(0, 0.02, PROTOTYPES))
    for variable in made.student.trainable_variables:  # another model than the teacher
        variable.assign(variable + RANDOM.normal(0, 0.05, variable.shape))
    said = logits_of(made.model, made.head_of_teacher, CROPS[GLOBAL])
    small = at_another_size(made.student, (4, 4))
    seen = [logits_of(m, made.head, CROPS[n]) for m, n in ((made.student, GLOBAL), (small, LOCAL))]
    for step, heat in ((0, 0.04), (1, 0.055), (2, 0.07), (4, 0.07)):
        made.step.assign(step)
        loss, alone, together = algorithm_1(said, np.concatenate(seen, 1), array(made.center), heat)
        found = array(made(CROPS, training=False))
        np.testing.assert_allclose(found[:, 0], loss, rtol=1e-4)
        np.testing.assert_allclose(found[:, 1], alone, rtol=1e-4)
        np.testing.assert_allclose(found[:, 2], [together] * 4, rtol=1e-4)
    assert int(made.step) == 4  # nothing moved outside of training


def test_models_of_one_size():
    for options, said in (
        ({"rotary": "dinov3"}, "no rotary positions.* Received: rotary="),
        ({"position": "relative"}, "no relative positions.* Received: position='relative'"),
        ({"num_classes": 3}, "no head"),
    ):
        with pytest.raises(ValueError, match=said):
            learner(**options)


def test_cross_entropy_leaves_out_the_same_crop():
    said = softmax(RANDOM.normal(size=(3, 2, 5)))
    logits = RANDOM.normal(size=(3, 2, 5))
    one, two = (-(said[:, i] * np.log(softmax(logits[:, 1 - i]))).sum(-1) for i in range(2))
    np.testing.assert_allclose(array(cross_entropy(np.float32(said), np.float32(logits))), (one + two) / 2, rtol=1e-5)
    np.testing.assert_allclose(array(entropy(np.float32([[1, 0], [0.5, 0.5]]))), [0, math.log(2)], atol=1e-6)


def compiled(made, rate=0.1):
    optimizer = keras.optimizers.SGD(rate)
    made.compile(optimizer, loss=CropsLoss(), weighted_metrics=metrics(), **how(False))
    return made


def test_teacher_and_center_follow_as_in_the_paper():
    made = compiled(learner())
    weights = [*made.model.weights, *made.head_of_teacher.weights]
    student = [*made.student.weights, *made.head.weights]
    teacher, center = [array(w) for w in weights], array(made.center)
    for number in range(STEPS):
        before = [array(w) for w in student]
        if number:  # the teacher moves after the student: first thing in the next step
            kept = 1 - 0.5 * (math.cos(math.pi * (number - 1) / STEPS) + 1) / 2
            teacher = [kept * old + (1 - kept) * new for old, new in zip(teacher, before)]
        made.train_on_batch(CROPS, np.zeros((4, 1)))
        for variable, value in zip(weights, teacher, strict=True):
            np.testing.assert_allclose(array(variable), value, rtol=1e-4, atol=1e-6, err_msg=variable.path)
        assert any(np.abs(array(w) - old).max() > 1e-6 for w, old in zip(student, before))
        said = logits_of(made.model, made.head_of_teacher, CROPS[GLOBAL])
        center = 0.9 * center + 0.1 * said.mean((0, 1))
        np.testing.assert_allclose(array(made.center), center, atol=1e-6)
    assert int(made.step) == STEPS


def test_only_the_student_is_trained():
    made = learner()
    fixed = {id(v) for part in (made.model, made.head_of_teacher) for v in part.variables}
    trained, others = ({id(v) for v in each} for each in (made.trainable_variables, made.non_trainable_variables))
    assert not trained & (fixed | others) and trained | others == {id(v) for v in made.variables} and fixed <= others
    assert len(trained) == len(made.student.trainable_variables) + 7
    assert len(made.model.trainable_variables) == len(made.student.trainable_variables)  # it can be trained afterwards
    assert {id(v) for v in made.trainable_weights} == trained


@slow_on_jax
def test_prototypes_are_frozen_at_first():
    made = compiled(learner(plan=(STEPS, 2, 2)))
    first, dense = array(made.head.kernel), array(made.head.dense[0].kernel)
    for _ in range(2):
        made.train_on_batch(CROPS, np.zeros((4, 1)))
    np.testing.assert_array_equal(array(made.head.kernel), first)
    assert np.abs(array(made.head.dense[0].kernel) - dense).max() > 0
    made.train_on_batch(CROPS, np.zeros((4, 1)))
    assert np.abs(array(made.head.kernel) - first).max() > 0


def test_evaluation_moves_nothing():
    made = compiled(learner())
    before = [array(v) for v in made.variables]
    found = made.evaluate(CROPS, np.zeros((4, 1)), verbose=0, return_dict=True)
    assert set(found) == {"loss", "teacher_entropy", "mean_entropy"}
    for variable, value in zip(made.variables, before):
        np.testing.assert_array_equal(array(variable), value, err_msg=variable.path)


@slow_on_jax
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", pytest.param("mixed_float16", marks=once)])
def test_half_precision(dtype):
    exact, half = learner(), learner(dtype=dtype)
    half.set_weights(exact.get_weights())
    assert {v.dtype for v in half.trainable_variables} == {"float32"}
    np.testing.assert_allclose(array(half(CROPS)), array(exact(CROPS)), rtol=0.1)
    made = compiled(half)
    assert isinstance(made.optimizer, keras.optimizers.LossScaleOptimizer) == (dtype == "mixed_float16")
    assert all(np.isfinite(made.train_on_batch(CROPS, np.zeros((4, 1)))))


@slow_on_jax
def test_crops_as_large_as_the_others_and_oblong_ones():
    made = compiled(learner(image_size=(8, 4)))
    oblong = {GLOBAL: CROPS[GLOBAL][:, :, :, :4], LOCAL: CROPS[LOCAL][:, :, :, :2]}
    assert np.isfinite(array(made(oblong))).all()
    same = {GLOBAL: oblong[GLOBAL], LOCAL: oblong[GLOBAL]}
    assert np.isfinite(made.train_on_batch(same, np.zeros((4, 1)))[0])
    assert array(made({GLOBAL: oblong[GLOBAL]})).shape == (4, 3)


def test_the_temperature_of_a_cold_teacher_does_not_grow_from_above():
    made = StudentTeacher(learner().model, PROTOTYPES, 16, temperature=0.02)
    made.plan.assign((STEPS, 4, 0))
    said = logits_of(made.model, made.head_of_teacher, CROPS[GLOBAL])
    expected = softmax(said / 0.02)
    np.testing.assert_allclose(array(made(CROPS))[:, 1], -(expected * np.log(expected)).sum(-1).mean(1), rtol=1e-3)
    assert student_teacher.COLDEST == 0.04
