import numpy as np
import pytest

from keras_vit import from_checkpoint
from tests.checkpoints.helpers import unexpected, write
from tests.checkpoints.towers import answers, arrays_in, both, io_in

pytestmark = pytest.mark.backend

TEXT = "params/txt/"


def stacked(arrays):
    """Returns the tensors of a model that was trained with a scan over blocks: they are the first axis."""
    block = f"{TEXT}Encoder_0/encoderblock"
    names = [name for name in arrays if name.startswith(f"{block}_0/")]
    found = {name.replace("block_0/", "block/"): np.stack([arrays[name]]) for name in names}
    return {name: array for name, array in arrays.items() if not name.startswith(f"{block}_")} | found


def older(arrays):
    """Returns the tensors of a very old file, which adds positions twice."""
    half = arrays[f"{TEXT}pos_embedding"] / 2
    return arrays | {f"{TEXT}pos_embedding": half, f"{TEXT}Encoder_0/pos_embedding": half}


@pytest.mark.parametrize("change", [stacked, older])
def test_other_ways_of_writing_it(change, tmp_path):
    io = io_in("siglip_bigvision")
    path = write(tmp_path / "file.npz", change(arrays_in("siglip_bigvision")))
    found = answers(from_checkpoint(path, part="both"), io)
    np.testing.assert_allclose(found["logits_per_image"], io["logits_per_image"], atol=1e-4)


def test_scale_and_bias_are_the_file_s():
    model, arrays = both("siglip_bigvision"), arrays_in("siglip_bigvision")
    similarity = model.get_layer("similarity")
    assert float(similarity.logit_scale) == arrays["params/t"] and float(similarity.logit_bias) == arrays["params/b"]


def test_other_text_towers_are_refused(tmp_path):
    arrays = arrays_in("siglip_bigvision") | {f"{TEXT}MAPHead_0/probe": np.ones((1, 1, 32), "float32")}
    path = write(tmp_path / "file.npz", arrays)
    assert not unexpected([(lambda: from_checkpoint(path, part="text"), "not in the model: MAPHead_0/probe")])
