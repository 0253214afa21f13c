import pathlib
import re

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.config import Optim
from keras_vit.training import finetuning
from tests.marks import few, how, once, slow

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (6, 8, 8, 3)).astype("float32"), np.arange(6) % 3


def model(**more):
    keras.utils.set_random_seed(0)
    made = vit("mu/4", image_size=8, num_classes=3, depth=3, **more)
    made.get_layer("head").kernel.assign(np.linspace(-1, 1, 96).reshape(32, 3))
    return made


def trained(made):
    return {re.sub(r"^sequential(_\d+)?/", "", v.path).split("/")[0] for v in made.trainable_variables}


@pytest.mark.parametrize(
    "upto, left",
    [
        (0, {"block_0", "block_1", "block_2", "norm", "head"}),
        (2, {"block_2", "norm", "head"}),
        (3, {"norm", "head"}),
        ("all", {"head"}),
    ],
)
def test_what_lies_below_is_frozen(upto, left):
    assert trained(finetuning.freeze(model(), upto)) == left


@pytest.mark.parametrize("before", [0, 1, 3, "all", None])
def test_freezing_does_not_depend_on_what_was_frozen_before(before):
    blocks = {"block_0", "block_1", "block_2"}
    made = finetuning.freeze(model(block={"layer_scale": 0.1}), before)
    assert trained(finetuning.freeze(made, 1)) == blocks - {"block_0"} | {"norm", "head"}
    finetuning.freeze(made, before)
    assert trained(finetuning.freeze(made, None)) == blocks | {"encoder", "norm", "head"}
    assert len(made.trainable_variables) == len(model(block={"layer_scale": 0.1}).trainable_variables)


def test_everything_is_thawed_at_any_depth():
    made = model()
    made.get_layer("block_1").mlp.fc1.trainable = False
    made.get_layer("block_2").trainable = False
    made.get_layer("block_2").mlp.trainable = True
    made.trainable = False
    assert len(finetuning.freeze(made, None).trainable_variables) == len(model().trainable_variables)


def test_what_is_thawed_is_trained():
    made = model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    still = {}
    for upto in ("all", None):
        before = {v.path: keras.ops.convert_to_numpy(v) for v in finetuning.freeze(made, upto).weights}
        made.compile("sgd", loss)
        made.train_on_batch(IMAGES, LABELS)
        still[upto] = {v.path.split("/")[0] for v in made.weights
                       if np.array_equal(keras.ops.convert_to_numpy(v), before[v.path])}  # fmt: skip
    assert still == {"all": {"encoder", "block_0", "block_1", "block_2", "norm"}, None: set()}


def nested(kind):
    """A ViT nested in another model: with a new head behind it, and a layer with weights before it."""
    vit_, before, after = model(), keras.layers.Conv2D(3, 1, name="before"), keras.layers.Dense(2, name="mine")
    if kind == "sequential":
        return keras.Sequential([keras.Input((8, 8, 3)), before, vit_, after])
    if kind == "functional":
        images = keras.Input((8, 8, 3))
        side = keras.layers.Dense(2, name="side")(keras.layers.Flatten()(images))
        return keras.Model(images, after(vit_(before(images) + 1.0)) + side)
    inner = keras.Sequential([keras.Input((8, 8, 3)), before, vit_])
    return keras.Sequential([inner, after])


@pytest.mark.parametrize("kind", ["sequential", "functional", "twice"])
def test_the_layers_behind_a_nested_vit_are_its_head(kind):
    made = nested(kind)
    own = {"mine", "side"} if kind == "functional" else {"mine"}
    assert trained(finetuning.freeze(made, "all")) == own
    assert trained(finetuning.freeze(made, 2)) == {"block_2", "norm", "head"} | own
    assert {"before", "encoder", "block_0"} <= trained(finetuning.freeze(made, None))
    assert trained(finetuning.add_lora(made, 2)) == {"block_0", "block_1", "block_2"} | own


def test_a_subclass_has_a_head_too():
    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.vit, self.mine = model(), keras.layers.Dense(2, name="mine")

        def call(self, images):
            return self.mine(self.vit(images))

    made = Mine()
    made(IMAGES)
    assert [v.path.split("/")[-2] for v in finetuning.freeze(made, "all").trainable_variables] == ["mine"] * 2
    assert len(finetuning.freeze(made, None).trainable_variables) == len(model().trainable_variables) + 2


def test_lora_says_itself_what_is_trained():
    made = finetuning.freeze(model(), 1)
    finetuning.add_lora(made, 2)
    assert trained(made) == {"block_1", "block_2", "head"}
    with pytest.raises(ValueError, match="has LoRA.* Call `merge_lora` first"):
        finetuning.freeze(made, None)
    assert trained(finetuning.freeze(finetuning.merge_lora(made), 2)) == {"block_2", "norm", "head"}
    probe = finetuning.freeze(model(), "all")
    with pytest.raises(ValueError, match="LoRA needs a block that is not frozen"):
        finetuning.add_lora(probe, 2)
    assert not probe.get_layer("block_0").attention.qkv.lora_enabled


@slow
def test_the_two_phases_of_the_page_run():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "own_loop.md").read_text()
    (_, block), names = re.findall(r"```python\n(.*?)```", text, re.DOTALL), {}
    exec(compile(block, "own_loop.md", "exec"), names)
    assert len(names["model"].trainable_variables) == len(names["backbone"].weights) + 2
    assert min(names["model"].optimizer.factors) == 0.75**4 and names["model"].optimizer.factors[-1] == 1


@pytest.mark.parametrize("settle", [lambda made: finetuning.freeze(made, 0), lambda made: finetuning.add_lora(made, 2)])
def test_a_frozen_stem_keeps_its_statistics(settle):
    made = settle(vit("mu/4", image_size=8, num_classes=3, stem="conv"))
    before = [keras.ops.convert_to_numpy(w) for w in made.get_layer("stem").weights]
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **how(False))
    made.train_on_batch(IMAGES, LABELS)
    for old, new in zip(before, made.get_layer("stem").weights):
        np.testing.assert_array_equal(old, keras.ops.convert_to_numpy(new))


@pytest.mark.parametrize("upto", [4, -1, True, "some", 1.0])
def test_no_such_block_is_named(upto):
    with pytest.raises(ValueError, match=r"number of blocks from 0 to 3. Received: upto="):
        finetuning.freeze(model(), upto)


def test_a_probe_needs_a_head():
    with pytest.raises(ValueError, match="linear probe needs a head"):
        finetuning.freeze(vit("mu/4", image_size=8, num_classes=0), "all")


def test_low_rank_updates_start_at_zero_train_alone_and_merge():
    made = model()
    plain = keras.ops.convert_to_numpy(made(IMAGES))
    count = made.count_params()
    finetuning.add_lora(made, 2)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(made(IMAGES)), plain, atol=1e-6)
    names = [v.path.rsplit("/", 1)[1] for v in made.trainable_variables]
    assert sorted(names) == sorted(["lora_kernel_a", "lora_kernel_b"] * 3 + ["kernel", "bias"])
    assert made.count_params() == count + 3 * 2 * (32 + 96)
    made.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for _ in range(3):
        made.train_on_batch(IMAGES, LABELS)
    merged = finetuning.merge_lora(made)
    assert merged.count_params() == count and len(merged.trainable_variables) == len(model().trainable_variables)
    learned = keras.ops.convert_to_numpy(made(IMAGES))
    assert np.abs(learned - plain).max() > 1e-3
    np.testing.assert_allclose(keras.ops.convert_to_numpy(merged(IMAGES)), learned, atol=1e-5)
    with pytest.raises(ValueError, match="LoRA already"):
        finetuning.add_lora(made, 2)
    with pytest.raises(ValueError, match="Received: rank=0"):
        finetuning.add_lora(model(), 0)


def test_a_head_of_one_s_own_in_a_flat_model_is_the_head():
    inside = vit("mu/4", image_size=8, num_classes=0)
    model = keras.Model(inside.input, keras.layers.Dense(4, name="mine")(inside.output))
    finetuning.freeze(model, "all")
    assert {v.path for v in model.trainable_variables} == {"mine/kernel", "mine/bias"}
    finetuning.add_lora(finetuning.freeze(model, None), 2)
    assert {v.path for v in model.trainable_variables if "lora" not in v.path} == {"mine/kernel", "mine/bias"}


def test_lora_is_merged_in_a_sequential_model():
    inside = vit("mu/4", image_size=8, num_classes=0)
    model = keras.Sequential([inside, keras.layers.Dense(4)])
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3)).astype("float32")
    model(images)
    finetuning.add_lora(model, 2)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    merged = finetuning.merge_lora(model)
    np.testing.assert_allclose(np.asarray(merged(images)), np.asarray(model(images)), atol=1e-4)


def test_what_was_adapted_to_data_is_kept_in_a_merged_model():
    inside = vit("mu/4", image_size=8, num_classes=4)
    adapted = keras.layers.Normalization()
    adapted.adapt(IMAGES)
    inputs = keras.Input((8, 8, 3))
    model = finetuning.add_lora(keras.Model(inputs, inside(128 + 60 * adapted(inputs))), 2)
    x = np.asarray(IMAGES, "float32")
    np.testing.assert_allclose(np.asarray(finetuning.merge_lora(model)(x)), np.asarray(model(x)), atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_weights_of_16_bits_is_refused(dtype):
    narrow = vit("mu/4", image_size=8, num_classes=3, depth=1, dtype=dtype)
    with pytest.raises(ValueError, match=f"model.dtype='mixed_{dtype}'. Received: '.*' in {dtype}"):
        finetuning.check(narrow, Optim())
    finetuning.check(narrow, Optim(freeze="all"))
    finetuning.check(vit("mu/4", image_size=8, depth=1, dtype=f"mixed_{dtype}"), Optim())


@pytest.mark.parametrize("stem", [None, "conv"])
def test_copies_of_a_frozen_model_are_frozen(stem, tmp_path):
    model = vit("mu/4", image_size=16, num_classes=3, depth=2, stem=stem)
    finetuning.freeze(model, "all").save(tmp_path / "a.keras")
    copies = (
        keras.models.load_model(tmp_path / "a.keras"),
        keras.models.clone_model(model),
        finetuning.merge_lora(model),
    )
    for copy in copies:
        assert [v.path for v in copy.trainable_variables] == ["head/kernel", "head/bias"]
        before = [np.asarray(v) for v in copy.non_trainable_variables if v.dtype == "float32"]
        copy(np.ones((2, 16, 16, 3)), training=True)
        after = [np.asarray(v) for v in copy.non_trainable_variables if v.dtype == "float32"]
        assert all((a == b).all() for a, b in zip(before, after))  # moving averages too


def test_a_merged_model_scales_its_loss_too():
    model = vit("mu/4", image_size=8, num_classes=3, dtype="mixed_float16")
    assert finetuning.merge_lora(model).dtype_policy.name == "mixed_float16"


@pytest.mark.parametrize("upto", [None, 1])
def test_a_file_of_a_model_with_lora_trains_the_same_and_merges_the_same(upto, tmp_path):
    made = finetuning.add_lora(finetuning.freeze(model(stem="conv"), upto), 2)
    for variable in made.trainable_variables:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    made.save(tmp_path / "a.keras")
    loaded, cloned = keras.models.load_model(tmp_path / "a.keras"), keras.models.clone_model(made)
    cloned.set_weights(made.get_weights())
    merged = [finetuning.merge_lora(one) for one in (made, loaded)]
    for one in (loaded, cloned):
        assert [v.path for v in one.trainable_variables] == [v.path for v in made.trainable_variables]
        np.testing.assert_array_equal(np.asarray(one(IMAGES)), np.asarray(made(IMAGES)))
    for one in merged:
        np.testing.assert_allclose(np.asarray(one(IMAGES)), np.asarray(made(IMAGES)), rtol=1e-4, atol=1e-4)
        wanted = finetuning.freeze(model(stem="conv"), upto).trainable_variables
        assert [v.path for v in one.trainable_variables] == [v.path for v in wanted]


@few(1)
@once
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_lora_on_integers_is_merged(mode):
    made = model()
    made.quantize(mode)
    finetuning.add_lora(made, 2)
    for variable in made.trainable_variables:
        if "lora" in variable.path:
            variable.assign(0.1 * np.random.default_rng(1).normal(size=variable.shape))
    merged = finetuning.merge_lora(made)
    assert merged.get_layer("block_0").attention.qkv.quantization_mode == mode
    learned, again = np.asarray(made(IMAGES)), np.asarray(merged(IMAGES))
    tolerance = {"int8": 0.03, "int4": 0.4}[mode] * np.ptp(learned)  # the sum is rounded anew
    np.testing.assert_allclose(again, learned, atol=tolerance)


def test_a_model_that_was_trained_is_compiled_again():
    model = vit("mu/4", image_size=8, num_classes=2)
    model.compile("sgd", "mse")
    finetuning.freeze(model, 1)  # before the first step nothing is said
    model.fit(np.zeros((2, 8, 8, 3)), np.zeros((2, 2)), verbose=0)
    for change in (lambda: finetuning.freeze(model, 0), lambda: finetuning.add_lora(model, 2)):
        with pytest.warns(UserWarning, match="was trained before `.*Compile it again"):
            change()
