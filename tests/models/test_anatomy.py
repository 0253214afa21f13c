import keras
import pytest

from keras_vit import PatchEncoder, Patches, TokenPool, TransformerBlock
from keras_vit.models import anatomy
from tests.explain.models import KINDS, PREFIX, shared


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_found(kind):
    model = shared(kind)
    assert anatomy.grid(model) == (3, 2)
    assert anatomy.num_prefix(model) == PREFIX[kind]
    assert [block.name for block in anatomy.blocks(model)] == ["block_0", "block_1", "block_2"]


def hand_made(causal=False, twice=False):
    inputs = keras.Input((12, 8, 3))
    x = PatchEncoder(16)(Patches(4)(inputs))
    block = TransformerBlock(2, 32)
    x = block(x, use_causal_mask=True) if causal else block(x)
    x = block(x) if twice else x
    return keras.Model(inputs, TokenPool("gap", num_prefix=1)(x))


def test_models_of_your_own():
    assert len(anatomy.blocks(hand_made())) == 1
    for model in (hand_made(causal=True), hand_made(twice=True)):
        with pytest.raises(ValueError, match="called (once, and by no other model|with tokens alone)"):
            anatomy.blocks(model)
    sequence = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="dense")
    with pytest.raises(ValueError, match="Received: 'dense', which has none"):
        anatomy.blocks(sequence)
    with pytest.raises(ValueError, match="'dense', which has none"):
        anatomy.blocks(keras.Model(sequence.inputs[0], sequence.outputs[0], name="dense"))
    with pytest.raises(ValueError, match="Received: 'm.keras'"):
        anatomy.blocks("m.keras")
