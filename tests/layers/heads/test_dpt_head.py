import importlib.util

import keras
import numpy as np
import pytest

from keras_vit import DPTHead
from tests.checkpoints.helpers import benchmark
from tests.harness import run_layer_test
from tests.marks import few, once

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


@few(1)
@pytest.mark.parametrize(
    "shapes, factors, output, options",
    [
        pytest.param([(2, 5, 4, 8)] * 3, (2, 1, 0.5), (2, 20, 16, 3), dict(neck=(4, 5, 6)), marks=once),
        ([(2, 6, 4, 5), (2, 3, 2, 8)], (None, 1), (2, 12, 8, 3), dict(batch_norm=False, dropout=0.0)),
        pytest.param([(2, 3, 3, 8)], (4,), (2, 24, 24, 3), dict(batch_norm=True), marks=once),
    ],
)
def test_layer(shapes, factors, output, options, tmp_path):
    make = lambda dtype: DPTHead(3, 4, factors=factors, **options, dtype=dtype)  # noqa: E731
    run_layer_test(make, shapes, output, ["conv0", "fusion0", "proj0", "conv", "classifier"], tmp_path)


def test_channels_of_the_neck_double_up_to_the_width_as_in_dpt_base():
    head = DPTHead(3, 4)
    head.build([(None, 2, 2, 768)] * 4)
    assert [layer.channels for layer in head.reassemble] == [96, 192, 384, 768]
    assert head.larger == [(16, 16), (8, 8), (4, 4), (2, 2)]


def test_equals_hugging_faces_dpt():
    """With half-pixel centers in both: the original aligns corners, which no export format of TensorFlow does."""
    torch = pytest.importorskip("torch")
    for name in ("timm", "transformers"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    benchmark("timm_alone").import_timm()  # else transformers cannot import a torchvision of another torch
    import transformers

    torch.manual_seed(0)
    config = transformers.DPTConfig(
        hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32, image_size=64, patch_size=16,
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[4, 5, 6, 7], fusion_hidden_size=8, num_labels=3,
        use_batch_norm_in_fusion_residual=True, readout_type="ignore", use_auxiliary_head=False,
    )  # fmt: skip
    theirs = transformers.DPTForSemanticSegmentation(config).eval()
    for layer in theirs.neck.fusion_stage.layers:
        layer.align_corners = False
    theirs.head.head[-1] = torch.nn.Identity()  # our task enlarges to the image
    for module in theirs.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -1, 1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
    tokens = [RNG.normal(size=(2, 17, 16)).astype("float32") for _ in range(4)]
    with torch.no_grad():
        wanted = theirs.head(theirs.neck([torch.tensor(x) for x in tokens], 4, 4)).numpy().transpose(0, 2, 3, 1)
    head = DPTHead(3, 8, neck=(4, 5, 6, 7))
    maps = [x[:, 1:].reshape(2, 4, 4, 16) for x in tokens]
    head.build([x.shape for x in maps])
    for ours, module in _pairs(head, theirs.neck, theirs.head.head):
        _copy(ours, module)
    found = np.asarray(head(maps))
    assert found.shape == (2, 32, 32, 3)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def _pairs(head, neck, last):
    """Yields our layers with PyTorch's."""
    yield from [(head.conv, last[0]), (head.norm, last[1]), (head.classifier, last[4])]
    for i in range(4):
        ours, theirs = head.reassemble[i], neck.reassemble_stage.layers[i]
        yield ours.proj, theirs.projection
        if ours.factor != 1:
            yield ours.resize, theirs.resize
        yield head.convs[i], neck.convs[i]
        fusion = neck.fusion_stage.layers[3 - i]  # the coarsest first
        yield head.projs[i], fusion.projection
        units = [(head.fusions[i], fusion.residual_layer2)]
        units += [(head.skips[i], fusion.residual_layer1)] if i < 3 else []
        for ours, theirs in units:
            yield from zip(ours.convs, (theirs.convolution1, theirs.convolution2))
            yield from zip(ours.norms, (theirs.batch_norm1, theirs.batch_norm2))


def _copy(ours, theirs):
    arrays = [theirs.weight, theirs.bias]
    if isinstance(ours, keras.layers.BatchNormalization):
        arrays += [theirs.running_mean, theirs.running_var]
    arrays = [array.detach().numpy() for array in arrays if array is not None]
    if arrays[0].ndim == 4:
        arrays[0] = arrays[0].transpose(2, 3, 1, 0)
    ours.set_weights(arrays)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(factors=(3,)), r"powers of two.* Received: factors=\(3,\)"),
        (dict(factors=()), r"factors=\(\)"),
        (dict(factors=(1, 0.5), neck=(4,)), "one entry per factor"),
        (dict(factors=(1, 0.5), neck=(4, 0)), r"neck\[1\]=0"),
        (dict(factors=(2, 1)), "must be 2 maps"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DPTHead(3, 4, **options)([keras.ops.zeros((1, 4, 4, 8))])
