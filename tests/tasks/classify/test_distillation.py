import keras
import numpy as np
import pytest

from keras_vit import class_names, vit
from keras_vit.tasks.classify.classify import ClassLoss
from keras_vit.tasks.classify.distillation import Distiller
from tests.marks import how, slow, slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (6, 8, 8, 3)).astype("float32"), np.eye(3, dtype="float32")[np.arange(6) % 3]


def model(seed, **more):
    keras.utils.set_random_seed(seed)
    made = vit("mu/4", image_size=8, num_classes=3, **more)
    for layer in made.layers:
        if layer.name.startswith("head"):
            layer.kernel.assign(np.random.default_rng(seed).normal(size=(32, 3)))
    return made


def soft(x, t=1.0):
    e = np.exp((x - x.max(-1, keepdims=True)) / t)
    return e / e.sum(-1, keepdims=True)


def heads(student):
    names = [n for n in ("head", "head_distilled") if n in {layer.name for layer in student.layers}]
    return [keras.ops.convert_to_numpy(keras.Model(student.inputs, student.get_layer(n).output)(IMAGES)) for n in names]


@pytest.mark.parametrize("distilled", [False, True])
@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_the_loss_is_deits(kind, distilled):
    student, teacher = model(1, tokens={"distilled": distilled}), model(2)
    learner = Distiller(student, teacher, kind, weight=0.3, temperature=3.0)
    compiled = how((kind, distilled) == ("soft", True))
    learner.compile(keras.optimizers.SGD(0.0), ClassLoss(), metrics=["accuracy"], **compiled)
    logits = heads(student)
    target = keras.ops.convert_to_numpy(teacher(IMAGES))
    by_labels = -(LABELS * np.log(soft(logits[0]))).sum(-1).mean()
    if kind == "soft":
        p, q = soft(target, 3), soft(logits[-1], 3)
        from_teacher = 9 * (p * np.log(p / q)).sum(-1).mean()
    else:
        from_teacher = -np.log(soft(logits[-1])[np.arange(6), target.argmax(-1)]).mean()
    found = learner.train_on_batch(IMAGES, LABELS, return_dict=True)
    assert found["loss"] == pytest.approx(0.7 * by_labels + 0.3 * from_teacher, rel=1e-4)
    right = np.mean(np.mean(logits, axis=0).argmax(-1) == LABELS.argmax(-1))
    assert found["accuracy"] == pytest.approx(right)
    assert learner.test_on_batch(IMAGES, LABELS, return_dict=True)["accuracy"] == pytest.approx(right)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(learner(IMAGES)), np.mean(logits, axis=0), atol=1e-5)


@slow
def test_the_student_learns_what_the_teacher_says_and_the_teacher_stays():
    student, teacher = model(1), model(2)
    before = [keras.ops.convert_to_numpy(w) for w in teacher.weights]
    learner = Distiller(student, teacher, "soft", weight=1.0)
    assert {id(v) for v in learner.trainable_variables} == {id(v) for v in student.trainable_variables}
    learner.compile(keras.optimizers.Adam(0.01), ClassLoss(), jit_compile=True)
    losses = [float(learner.train_on_batch(IMAGES, LABELS)) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]
    for old, new in zip(before, teacher.weights):
        np.testing.assert_array_equal(old, keras.ops.convert_to_numpy(new))


def test_float16_scales_its_loss():
    learner = Distiller(model(1, dtype="mixed_float16"), model(2))
    learner.compile("sgd", ClassLoss())
    assert isinstance(learner.optimizer, keras.optimizers.LossScaleOptimizer)
    if keras.backend.backend() != "jax":  # whose CPU attention has no float16 product summed in float32
        assert np.isfinite(learner.train_on_batch(IMAGES, LABELS))


def test_a_teacher_of_other_classes_is_refused():
    with pytest.raises(ValueError, match=r"output_shape must be the student's, \(None, 3\). Received: \(None, 4\)"):
        Distiller(model(1), vit("mu/4", image_size=8, num_classes=4))
    with pytest.raises(ValueError, match="`weight` must be from 0 to 1. Received: weight=2"):
        Distiller(model(1), model(2), weight=2.0)


def test_a_teacher_with_the_classes_in_another_order_is_refused():
    student, teacher = model(1), model(2)
    class_names(student, ["cat", "dog", "fox"])
    class_names(teacher, ["cat", "fox", "dog"])
    with pytest.raises(ValueError, match="in their order, cat, dog, fox. Received: cat, fox, dog. To rename them: "):
        Distiller(student, teacher)
    for names in (["cat", "dog", "fox"], ["0", "1", "2"]):  # numbers say nothing
        class_names(teacher, names)
        Distiller(student, teacher)
    for names in (["n02123045", "n02084071", "n02119789"], ["cat", "dog, hound", "fox"]):  # of other libraries
        class_names(teacher, names)
        with pytest.warns(UserWarning, match="taken to have the student's classes in their order, cat, dog, fox"):
            Distiller(student, teacher)


def test_a_teacher_of_other_pixels_is_refused():
    with pytest.raises(ValueError, match=r"the student's range, \(0, 255\). Received: \(0, 1\)"):
        Distiller(model(1), model(2, value_range=(0, 1)))


def test_the_heads_have_their_order_whatever_the_graph_s():
    model = vit("mu/4", image_size=8, num_classes=3, depth=1, tokens={"distilled": True})
    swapped = keras.layers.Average()([model.get_layer(name).output for name in ("head_distilled", "head")])
    student = keras.Model(model.input, swapped)
    assert Distiller(student, vit("mu/4", image_size=8, num_classes=3, depth=1)).names == ["head", "head_distilled"]


def test_a_student_of_any_layers_trains_its_one_head_on_both():
    student = keras.Sequential([vit("mu/4", image_size=8, num_classes=0), keras.layers.Dense(3)])
    learner = Distiller(student, model(2), "soft")
    learner.compile(keras.optimizers.SGD(0.1), ClassLoss(), **how(False))
    before = [keras.ops.convert_to_numpy(w) for w in student.trainable_weights]
    assert np.isfinite(learner.train_on_batch(IMAGES, LABELS))
    assert not np.array_equal(before[-1], keras.ops.convert_to_numpy(student.trainable_weights[-1]))


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_images_of_weight_0_do_not_train(kind):
    learner = Distiller(model(1), model(2), kind)
    learner.compile(keras.optimizers.SGD(1.0), ClassLoss())
    before = learner.student.get_weights()
    assert learner.train_on_batch(IMAGES, LABELS, sample_weight=np.zeros(6)) == 0
    for old, new in zip(before, learner.student.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_probabilities_are_no_logits():
    teacher = model(2)
    teacher = keras.Model(teacher.input, keras.layers.Softmax(name="softmax")(teacher.output), name="sure")
    with pytest.raises(ValueError, match="The teacher must return logits. Received: 'sure'"):
        Distiller(model(1), teacher)


@slow_on_jax
def test_a_checkpoint_holds_student_and_teacher(tmp_path):
    learner = Distiller(model(0), model(1), "soft", weight=np.float32(0.25), temperature=2.0)
    learner.compile("adam", "mse", jit_compile=False)
    saving = keras.callbacks.ModelCheckpoint(tmp_path / "learner.keras")
    learner.fit(IMAGES, LABELS, epochs=1, verbose=0, callbacks=[saving])
    loaded = keras.models.load_model(tmp_path / "learner.keras", compile=False)
    assert (loaded.kind, loaded.weight, loaded.temperature) == ("soft", 0.25, 2.0)
    assert not loaded.teacher.trainable_variables
    for name in ("student", "teacher"):
        ours, theirs = (getattr(each, name)(IMAGES) for each in (loaded, learner))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
