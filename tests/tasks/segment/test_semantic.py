import types

import keras
import numpy as np
import pytest

from keras_vit import add_lora, freeze, from_checkpoint, load_weights, vit
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.config import Augment, Data, Recipe
from keras_vit.tasks.segment.segment import Segment
from tests.marks import EAGERLY, few, once, slow, slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
CLASSES = ("background", "b", "c")
IMAGES = RNG.integers(0, 256, (2, 32, 48, 3)).astype("float32")
SMALL = dict(variant="mu/8", image_size=(32, 48))
HYBRID = dict(variant="mu/8", image_size=(32, 48), stem=((8, 2), (8, 1)), depth=2)


def source(**values):
    """Data with masks of these values, `v255=` and so on."""
    counts = np.zeros((1, 256), int)
    for name, count in values.items():
        counts[0, int(name[1:])] = count
    return types.SimpleNamespace(
        class_names=(), mask_counts=counts, mask_values={int(v): "a.png" for v in np.flatnonzero(counts[0])}
    )


@few(1)
@pytest.mark.parametrize(
    "head, more",
    [
        pytest.param("linear", dict(SMALL, tokens={"class_token": True, "registers": 2}), marks=once),
        ("mask", dict(SMALL, final_norm="after")),
        pytest.param("dpt", dict(SMALL, tokens={"class_token": True}), marks=slow),
        ("dpt", HYBRID),
    ],
)
def test_any_head_learns_on_any_encoder(head, more, tmp_path):
    task = Segment(classes=CLASSES, head={"kind": "dpt", "width": 8} if head == "dpt" else head)
    model = task.model(**more)
    assert model.output_shape == (None, 32, 48, 3) and model.output.dtype == "float32"
    encoder = vit(**more, num_classes=0, pooling="none")
    heads = [v.path for v in model.weights if v.path.startswith("head/")]
    assert heads and {v.path for v in model.weights} - set(heads) == {v.path for v in encoder.weights}
    found = arguments_of(model)
    assert (found["num_classes"], found["pooling"]) == (0, "none")
    model.compile(keras.optimizers.Adam(1e-3), **task.compiled(None), run_eagerly=EAGERLY)
    x, y = task.batch({"images": IMAGES, "segmentation_masks": np.zeros((2, 32, 48, 1), "uint8")}, None, (0, 0))
    losses = [model.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(2)]
    assert losses[1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)))


@slow_on_jax
def test_linear_logits_are_each_tokens_enlarged():
    model = Segment(classes=CLASSES).model(**SMALL, tokens={"class_token": True})
    model.get_layer("head").kernel.assign(RNG.normal(size=(32, 3)))
    tokens = np.asarray(keras.Model(model.input, model.get_layer("pool").output)(IMAGES))[:, 1:].reshape(2, 4, 6, 32)
    logits = tokens @ np.asarray(model.get_layer("head").kernel)
    np.testing.assert_allclose(np.asarray(model(IMAGES)), keras.ops.image.resize(logits, (32, 48)), atol=1e-5)


def test_dpt_takes_four_even_blocks_or_the_stem_and_three():
    def head(**more):
        model = Segment(classes=CLASSES, head="dpt").model(**{**SMALL, **more})
        blocks = [keras.Model(model.input, model.get_layer(f"patch_tokens_{i}").input) for i in (0, 1, 2)]
        last = [[layer.name for layer in graph.layers if layer.name.startswith("block_")][-1] for graph in blocks]
        return model.get_layer("head"), last

    found, blocks = head(depth=8, tokens={"class_token": True})
    assert blocks == ["block_1", "block_3", "block_5"]
    assert found.factors == (2, 1, 0.5, 0.25) and found.filters == 16 and len(found.input) == 4
    assert head(depth=1, tokens={"class_token": True}, patch_size=16)[0].factors == (4, 2, 1, 0.5)
    found = Segment(classes=CLASSES, head={"kind": "dpt", "width": 8}).model(**HYBRID).get_layer("head")
    assert found.factors == (None, 2, 1, 0.5)
    assert found.filters == 8 and found.input[0].shape == (None, 16, 24, 8)


@slow_on_jax
def test_encoder_can_be_frozen_adapted_and_shown():
    model = Segment(classes=CLASSES, head="dpt").model(**SMALL)
    freeze(model, "all")
    assert model.trainable_variables and all(v.path.startswith("head/") for v in model.trainable_variables)
    model = Segment(classes=CLASSES, head="mask").model(**SMALL)
    add_lora(model, 2)
    assert model(IMAGES).shape == (2, 32, 48, 3)


def test_weights_of_a_classifier_leave_its_head_and_pooling(tmp_path):
    classifier = vit("mu/8", image_size=32, num_classes=3, pooling="map", representation_size=16)
    classifier.save(tmp_path / "model.keras")
    model = Segment(classes=CLASSES).model(variant="mu/8", weights=tmp_path / "model.keras", image_size=(32, 48))
    want = np.asarray(classifier.get_layer("block_0").weights[2])
    np.testing.assert_array_equal(np.asarray(model.get_layer("block_0").weights[2]), want)
    assert model.output_shape == (None, 32, 48, 3) and not np.asarray(model.get_layer("head").kernel).any()


@pytest.mark.parametrize("head", ["linear", *(pytest.param(head, marks=slow) for head in ("mask", "dpt"))])
def test_weights_of_a_segmenter_keep_its_head(tmp_path, head):
    task = Segment(classes=CLASSES, head=head)
    first = task.model(variant="mu/8", image_size=(32, 48))
    for variable in first.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    first.save(tmp_path / "model.keras")

    def heads(task, **arguments):
        arguments = dict(variant="mu/8", weights=tmp_path / "model.keras", image_size=(64, 48)) | arguments
        return [np.asarray(v) for v in task.model(**arguments).weights if v.path.startswith("head/")]

    want = [np.asarray(v) for v in first.weights if v.path.startswith("head/")]
    (tmp_path / "model.labels.txt").write_text("\n".join(CLASSES))
    assert len(want) >= 2
    assert all(np.array_equal(*pair) for pair in zip(heads(task), want, strict=True))
    others = heads(task, head="new"), heads(Segment(classes=(*CLASSES[:2], "else"), head=head))
    assert not any(np.array_equal(*pair) for other in others for pair in zip(other, want, strict=True))
    assert heads(Segment(classes=(*CLASSES, "more"), head=head))[-1].shape[-1] == 4 or head == "mask"
    assert all(
        np.array_equal(*pair) for pair in zip(heads(task, head="require", norm={"epsilon": 0.1}), want, strict=True)
    )
    with pytest.raises(ValueError, match="a segmenter with this head and these classes. Received: .*model.keras"):
        heads(Segment(classes=(*CLASSES[:2], "else"), head=head), head="require")
    with pytest.raises(ValueError, match="Received: head='old'"):
        heads(task, head="old")


def test_heads_of_other_tasks_are_refused(tmp_path):
    classifier = vit("mu/8", image_size=(32, 48), num_classes=3, pooling="gap")
    segmenter = Segment(classes=CLASSES).model(variant="mu/8", image_size=(32, 48))
    for one, other in ((classifier, segmenter), (segmenter, classifier)):
        one.get_layer("head").kernel.assign(np.ones((32, 3)))  # of one shape in both
        one.save(tmp_path / "model.keras")
        other.get_layer("head").kernel.assign(np.zeros((32, 3)))
        with pytest.raises(ValueError, match="has a head for another task .* Pass head='new'"):
            load_weights(other, tmp_path / "model.keras")
        load_weights(other, tmp_path / "model.keras", head="new")
        assert not np.asarray(other.get_layer("head").kernel).any()
    assert from_checkpoint(tmp_path / "model.keras").output_shape == (None, 24, 32)  # the encoder alone
    assert from_checkpoint(tmp_path / "model.keras", num_classes=5).output_shape == (None, 5)


def test_values_outside_the_classes_are_void():
    task = Segment(classes=CLASSES, first=1, void=7)
    masks = np.array([0, 1, 2, 3, 7, 255], "uint8").reshape(1, 1, 6, 1)
    _, y = task.batch({"images": None, "segmentation_masks": masks}, None, None)
    assert y.ravel()[1:4].tolist() == [0, 1, 2] and (y.ravel()[[0, 4, 5]] > 2).all()


def test_data_must_have_the_values_of_the_classes():
    task = Segment(classes=CLASSES, first=1, void=9)
    assert task.on(source(v1=5, v3=5, v9=1, v255=1)) == task
    with pytest.raises(
        ValueError, match=r"values 1 to 3, one per class, or 9 for void. Received: \[0, 4\], such as 0 in 'a.png'"
    ):
        task.on(source(v0=1, v2=3, v4=1))
    task.on(source(v1=5, v255=1)), task.on(source(v1=5), SMALL), task.on(source(v1=5, v3=1, v255=1), SMALL)
    with pytest.raises(ValueError, match=r"two classes or more, values 1 to 3; 255 is void. Received: only \['back"):
        task.on(source(v1=5, v255=1), SMALL)  # to train a model on


def test_class_weights_balance_the_classes():
    task = Segment(classes=CLASSES, first=1, class_weights=True, dice=0.5)
    loss = task.compiled(source(v1=60, v2=30, v3=10, v9=500))["loss"]
    np.testing.assert_allclose(loss.class_weights, [100 / 180, 100 / 90, 100 / 30])
    assert loss.dice == 0.5


def test_answers_are_shares_and_pictures_are_painted():
    task = Segment(classes=CLASSES, first=1)
    output = np.zeros((4, 8, 3), "float32")
    output[:, :5, 2], output[:, 5:, 1] = 1, 1
    assert list(task.answer(output).items()) == [("c", 0.625), ("b", 0.375), ("background", 0.0)]
    image = np.full((4, 8, 3), 100.0)
    drawn = task.picture(image, output)
    assert drawn.shape == (4, 8, 3) and len(np.unique(drawn.reshape(-1, 3), axis=0)) == 2
    both = task.picture(image, output, {"segmentation_masks": np.ones((8, 16, 1), "uint8")})
    np.testing.assert_array_equal(both[:, :8], drawn)
    assert (both[:, 8] == 255).all() and (both[:, 9:] == 100).all() and both.shape == (4, 17, 3)


@pytest.mark.parametrize(
    "options, parts, message",
    [
        (dict(classes=("a",)), {}, r"2 to 254 classes. Received: classes=\('a',\)"),
        (dict(classes=("a", "a")), {}, "different names"),
        (dict(classes=("a", "b"), first=255), {}, "2 classes from first=255"),
        (dict(void=2), {}, "must not be the value of a class. Received: void=2"),
        (dict(classes=("a", "b"), head="mask"), {}, "3 classes or more"),
        ({}, dict(augment=Augment(mixup=0.2, randaugment=2)), "Received: augment.mixup=0.2, augment.randaugment=2"),
        ({}, dict(data=Data(resize=256)), "data.resize=256"),
    ],
)
def test_settings_that_contradict_each_other(options, parts, message):
    task = Segment(**{"classes": CLASSES, **options})
    with pytest.raises(ValueError, match=message):
        task.check(Recipe("name", SMALL, task, **parts))


@pytest.mark.parametrize("more", [dict(num_classes=4), dict(pooling="gap")])
def test_the_models_head_is_the_tasks(more):
    with pytest.raises(ValueError, match="head is the task's"):
        Segment(classes=CLASSES).model(**SMALL, **more)
