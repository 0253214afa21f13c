import keras
import numpy as np
import pytest

from keras_vit import (
    PatchEncoder,
    Patches,
    TokenPool,
    TransformerBlock,
    add_lora,
    export_saved_model,
    load_weights,
    save_checkpoint,
    vit,
)
from keras_vit.models.backbone import backbone, calls, variables_of, without_lora
from tests.marks import once

pytestmark = pytest.mark.backend


def tiny(**more):
    return vit("mu/4", image_size=8, num_classes=0, depth=1, **more)


def test_a_vit_is_its_own_backbone():
    model = tiny()
    assert backbone(model) is model and calls(model) == []
    longer = keras.Model(model.input, keras.layers.Dense(4)(model.output))
    assert backbone(longer) is longer


def test_it_is_found_at_any_depth_and_in_any_kind_of_model():
    inner, images = tiny(), keras.Input((8, 8, 3))
    functional = keras.Model(images, keras.layers.Dense(4)(inner(images)))
    sequential = keras.Sequential([keras.layers.Resizing(8, 8), inner, keras.layers.Dense(4)])
    deeper = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.RandomFlip(), functional])
    unbuilt = keras.Sequential([keras.layers.TimeDistributed(inner)])
    for model in (functional, sequential, deeper, unbuilt):
        assert backbone(model) is inner
    assert [(graph, node.operation) for graph, node in calls(deeper)] == [(deeper, functional), (functional, inner)]


def test_a_sequence_of_blocks_is_one_too():
    layers = [keras.Input((8, 8, 3)), Patches(4), PatchEncoder(16), TransformerBlock(2, 32), TokenPool()]
    model = keras.Sequential(layers)
    assert backbone(keras.Sequential([model, keras.layers.Dense(2)])) is model


def test_a_model_without_exactly_one_vit_is_one_clear_error():
    with pytest.raises(ValueError, match="Received: 'm.keras'"):
        backbone("m.keras")
    dense = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="dense")
    with pytest.raises(ValueError, match="Received: 'dense', which has none"):
        backbone(dense)
    one, two, images = tiny(name="one"), tiny(name="two"), keras.Input((8, 8, 3))
    with pytest.raises(ValueError, match="which has 2: 'one', 'two'"):
        backbone(keras.Model(images, one(images) + two(images)))


def test_a_vit_that_is_not_called_once_in_a_graph_must_be_passed_itself():
    inner, images, others = tiny(), keras.Input((8, 8, 3)), keras.Input((8, 8, 3))
    twins = keras.Model([images, others], inner(images) - inner(others), name="twins")
    frames = keras.Input((2, 8, 8, 3))
    film = keras.Model(frames, keras.layers.TimeDistributed(inner)(frames), name="film")
    unbuilt = keras.Sequential([keras.layers.Resizing(8, 8), inner], name="unbuilt")
    for model in (twins, film, unbuilt):
        assert backbone(model) is inner
        with pytest.raises(ValueError, match=f"'{model.name}' does not call its ViT .* Pass the ViT itself"):
            calls(model)
    unbuilt(np.zeros((1, 4, 4, 3)))
    assert len(calls(unbuilt)) == 1


@once
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_what_needs_float_weights_or_none_of_lora_says_so(tmp_path):
    quantized, adapted = tiny(), add_lora(vit("mu/4", image_size=8, num_classes=2, depth=1), 2)
    quantized.quantize("int8")
    calls = {
        "Export .see its argument `quantize`.": lambda model: export_saved_model(model, tmp_path / "saved"),
        "A checkpoint": lambda model: save_checkpoint(model, tmp_path / "a.safetensors", format="timm"),
        "Loading a checkpoint": lambda model: load_weights(model, tmp_path / "none.safetensors"),
    }
    for what, call in calls.items():
        with pytest.raises(ValueError, match=f"{what} needs the model as it was before `model.quantize`.*in int8"):
            call(quantized)
        if what != next(iter(calls)):
            with pytest.raises(ValueError, match=f"{what} needs a model without LoRA"):
                call(adapted)
    assert not list(tmp_path.iterdir())


def test_a_configuration_without_lora_keeps_all_else():
    config = {"parts": {"a": {"lora": {"rank": 2}, "frozen": ["b"]}, "c": {"quantization": 1, "trainable": False}}}
    layers = [{**config, "lora_rank": 2, "lora_alpha": 2, "units": 3}, {"parts": {"mine": {"lora": 1, "x": 2}}}]
    assert without_lora({"layers": layers, "pair": (1, 2)}) == {
        "layers": [{"parts": {"c": {"quantization": 1}}, "units": 3}, layers[1]],
        "pair": (1, 2),
    }


def test_weights_have_their_paths_inside_a_model_that_was_loaded_in_another(tmp_path):
    inner = tiny()
    keras.Sequential([keras.Input((8, 8, 3)), inner, keras.layers.Dense(2)]).save(tmp_path / "outer.keras")
    loaded = backbone(keras.models.load_model(tmp_path / "outer.keras"))
    assert list(variables_of(loaded)) == list(variables_of(inner)) == [v.path for v in inner.weights]
