import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, TransformerBlock, vit
from keras_vit.backbone import backbone, calls

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
