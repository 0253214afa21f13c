import numpy as np
import pytest

from keras_vit.checkpoints.formats.diffusers_autoencoder import DECODER, ENCODER
from keras_vit.checkpoints.match import matching
from tests.latents import tensors

pytestmark = pytest.mark.backend


class Checkpoint:
    config = {"norm_num_groups": 4, "scaling_factor": 0.5, "sample_size": [8, 12]}


STATED = {"widths": (8, 16), "depth": 1, "latent_channels": 4, "channels": 3, "attention": True, "projection": True,
          "groups": 4, "scaling_factor": 0.5, "shift_factor": 0.0, "image_size": (8, 12)}  # fmt: skip


@pytest.mark.parametrize("form", [ENCODER, DECODER], ids=lambda form: form.name)
def test_sizes_are_of_the_tensors(form):
    shapes = {name: array.shape for name, array in tensors().items()}
    assert form.detect(shapes)
    assert form.architecture(shapes, Checkpoint)[0] == STATED
    fewer = {name: shape for name, shape in shapes.items() if "attentions" not in name and "quant" not in name}
    assert form.architecture(fewer, Checkpoint)[0] == STATED | {"attention": False, "projection": False}


@pytest.mark.parametrize("form", [ENCODER, DECODER], ids=lambda form: form.name)
def test_levels_of_different_depth_are_refused(form):
    level = "encoder.down_blocks.1" if form is ENCODER else "decoder.up_blocks.1"
    shapes = {name: array.shape for name, array in tensors().items()}
    shapes |= {f"{level}.resnets.{len(STATED['widths'])}.conv1.weight": (8, 8, 3, 3)}
    shapes |= {f"{level}.resnets.1.conv1.weight": (8, 8, 3, 3)}
    with pytest.raises(ValueError, match="All levels must have as many residual blocks. Received"):
        form.architecture(shapes, Checkpoint)


def test_attention_of_one_head():
    """Keras's kernels have an axis of heads; PyTorch's matrices are transposed."""
    weight = np.arange(12, dtype="float32").reshape(4, 3)  # from 3 channels to 4
    (row,) = matching(DECODER, "mid_attention/query/kernel", {})
    (read,) = row.form.read([weight], 1)
    assert read.shape == (3, 1, 4)
    np.testing.assert_array_equal(np.arange(3) @ read[:, 0], weight @ np.arange(3))
    (row,) = matching(DECODER, "mid_attention/attention_output/kernel", {})
    (read,) = row.form.read([weight], 1)
    np.testing.assert_array_equal(np.arange(3) @ read[0], weight @ np.arange(3))
