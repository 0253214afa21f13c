import importlib.util

import keras
import numpy as np
import pytest

from keras_vit import MaskDecoder
from tests.checkpoints.helpers import benchmark
from tests.harness import run_layer_test
from tests.marks import few, first_everywhere, slow_on_jax

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")


@few(1)
@slow_on_jax
@pytest.mark.parametrize(
    "options", first_everywhere(dict(depth=2, width=12, dropout=0.1, stochastic_depth=0.1), dict(depth=1))
)
def test_layer(options, tmp_path):
    parts = ["proj", "decoder_0", "norm", "proj_patches", "proj_classes", "mask_norm"]
    make = lambda dtype: MaskDecoder(4, 2, 16, **options, dtype=dtype)  # noqa: E731
    run_layer_test(make, TOKENS.shape, (2, 6, 4), parts, tmp_path)


def test_logits_are_normalized_cosines_of_patches_and_classes():
    head = MaskDecoder(3, 2, 16, depth=1)
    found = np.asarray(head(TOKENS))
    classes = np.repeat(np.asarray(head.classes), 2, axis=0)
    x = np.asarray(head.norm(head.blocks[0](np.concatenate([np.asarray(head.proj(TOKENS)), classes], axis=1))))
    patches, classes = x[:, :6] @ np.asarray(head.proj_patches.kernel), x[:, 6:] @ np.asarray(head.proj_classes.kernel)
    cosines = np.einsum("bpw,bcw->bpc", patches, classes)
    cosines /= np.linalg.norm(patches, axis=-1)[:, :, None] * np.linalg.norm(classes, axis=-1)[:, None]
    centered = cosines - cosines.mean(-1, keepdims=True)
    np.testing.assert_allclose(found, centered / np.sqrt(centered.var(-1, keepdims=True) + 1e-6), atol=1e-4)


def test_equals_the_authors_code():
    torch = pytest.importorskip("torch")
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    timm = benchmark("timm_alone").import_timm()
    torch.manual_seed(0)
    block = timm.models.vision_transformer.Block(8, 2, 2.0, qkv_bias=True, norm_layer=torch.nn.LayerNorm).eval()
    norm, mask_norm, proj = torch.nn.LayerNorm(8), torch.nn.LayerNorm(5), torch.nn.Linear(8, 8)
    classes, patch_kernel, class_kernel = torch.randn(1, 5, 8), torch.randn(8, 8), torch.randn(8, 8)
    with torch.no_grad():  # https://github.com/rstrudel/segmenter, segm/model/decoder.py, in lines of our own
        x = norm(block(torch.cat([proj(torch.tensor(TOKENS)), classes.repeat(2, 1, 1)], 1)))
        unit = torch.nn.functional.normalize
        wanted = mask_norm(unit(x[:, :-5] @ patch_kernel, dim=-1) @ unit(x[:, -5:] @ class_kernel, dim=-1).mT)
    head = MaskDecoder(5, 2, 16, depth=1, gelu="exact", epsilon=1e-5)
    head.build(TOKENS.shape)
    ours, b = head.blocks[0], block
    dense = {
        head.proj: proj, ours.attention.qkv: b.attn.qkv, ours.attention.proj: b.attn.proj, ours.mlp.fc1: b.mlp.fc1,
        ours.mlp.fc2: b.mlp.fc2,
    }  # fmt: skip
    for layer, linear in dense.items():
        layer.kernel.assign(np.reshape(linear.weight.detach().numpy().T, layer.kernel.shape))
        layer.bias.assign(np.reshape(linear.bias.detach().numpy(), layer.bias.shape))
    head.classes.assign(classes.numpy())
    head.proj_patches.kernel.assign(patch_kernel.numpy())
    head.proj_classes.kernel.assign(class_kernel.numpy())
    np.testing.assert_allclose(np.asarray(head(TOKENS)), wanted.numpy(), atol=1e-4)


def test_all_its_parameters_count_as_the_head_in_layer_decay():
    head = MaskDecoder(3, 2, 16, name="head")
    head.build(TOKENS.shape)
    assert not [v.path for v in head.weights if "block_" in v.path]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((2, 2, 16), "at least 3.* Received: units=2"),
        ((4, 0, 16), "num_heads=0"),
        ((4, 2, 16, "depth"), "depth=0"),
        ((4, 3, 16), "3 heads|num_heads=3"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    options = {"depth": 0} if arguments[3:] else {}
    with pytest.raises(ValueError, match=message):
        MaskDecoder(*arguments[:3], **options)(keras.ops.zeros((1, 6, 8)))
