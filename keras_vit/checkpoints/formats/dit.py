"""Names in files of DiT: its authors', which SiT has too, and diffusers'."""

import math
import re

from keras_vit.checkpoints.formats import timm
from keras_vit.checkpoints.formats.timm_architecture import BLOCK
from keras_vit.checkpoints.formats.transformers_config import CONFIG
from keras_vit.checkpoints.inputs import POSITION
from keras_vit.checkpoints.tables import (
    LINEAR,
    SAME,
    Format,
    Missing,
    Row,
    blocks,
    each,
    joined,
    need,
    torch_dense,
)
from keras_vit.utils.resampling import square

HEADS = {384: 6, 768: 12, 1024: 16, 1152: 16}  # of the authors' models, by width (arXiv:2212.09748, table 1)
BLOCK_PATHS = re.compile(r"block_\{i\}/(attention/(qkv|proj)|mlp/fc\d)/.*")
THEIRS = "transformer_blocks.{i}"  # diffusers'
COPIES = f"{THEIRS}.norm1.emb"  # what diffusers has in every block, and the authors once
TABLE, FREQUENCIES = "y_embedder.embedding_table.weight", 256
PATCHES = ("x_embedder.proj.weight", "pos_embed.proj.weight")  # the authors', diffusers'
QKV = [f"{THEIRS}.attn1.to_{part}" for part in "qkv"]
FLAT = each(  # a convolution over patches is a matrix of flat ones
    lambda a, heads: a.transpose(2, 3, 1, 0).reshape(-1, len(a)), lambda a, heads: a.T
)

ROWS = (
    Row("encoder/projection/kernel", "x_embedder.proj.weight", FLAT),
    Row("encoder/projection/bias", "x_embedder.proj.bias", SAME),
    Row(POSITION, "pos_embed", SAME),
    *torch_dense("time/fc1", "t_embedder.mlp.0"),
    *torch_dense("time/fc2", "t_embedder.mlp.2"),
    Row("label/embeddings", TABLE, SAME),
    *(row for row in timm.ROWS if BLOCK_PATHS.fullmatch(str(row.ours))),
    *torch_dense("block_{i}/modulation", f"{BLOCK}.adaLN_modulation.1"),
    *torch_dense("head/modulation", "final_layer.adaLN_modulation.1"),
    *torch_dense("head/pixels", "final_layer.linear"),
)


def conditions(ours, place):
    """Returns the rows of diffusers' times and labels."""
    return (
        *torch_dense(f"time{ours}/fc1", f"{place}.timestep_embedder.linear_1"),
        *torch_dense(f"time{ours}/fc2", f"{place}.timestep_embedder.linear_2"),
        Row(f"label{ours}/embeddings", f"{place}.class_embedder.embedding_table.weight", SAME),
    )


DIFFUSERS_ROWS = (
    Row("encoder/projection/kernel", "pos_embed.proj.weight", FLAT),
    Row("encoder/projection/bias", "pos_embed.proj.bias", SAME),
    Row(POSITION, "pos_embed", SAME),  # computed, not in the file
    *conditions("_{i}", COPIES),
    *conditions("", COPIES.format(i=0)),
    Row("block_{i}/attention/qkv/kernel", tuple(f"{part}.weight" for part in QKV), joined(LINEAR)),
    Row("block_{i}/attention/qkv/bias", tuple(f"{part}.bias" for part in QKV), joined(SAME)),
    *torch_dense("block_{i}/attention/proj", f"{THEIRS}.attn1.to_out.0"),
    *torch_dense("block_{i}/mlp/fc1", f"{THEIRS}.ff.net.0.proj"),
    *torch_dense("block_{i}/mlp/fc2", f"{THEIRS}.ff.net.2"),
    *torch_dense("block_{i}/modulation", f"{THEIRS}.norm1.linear"),
    *torch_dense("head/modulation", "proj_out_1"),
    *torch_dense("head/pixels", "proj_out_2"),
)
# Of diffusers' options, those that a DiT has; with others the same tensors compute something else.
COMPUTED = {
    "activation_fn": "gelu-approximate",
    "norm_type": "ada_norm_zero",
    "norm_elementwise_affine": False,
    "upcast_attention": False,
}
NEEDED = ("num_attention_heads", "sample_size")


def _sizes(shapes, patches, last, table, block, fc1):
    """Returns the arguments of `dit` that tensors show."""
    width, channels, *patch_size = need(shapes, patches, 4)
    return {
        "channels": channels,
        "patch_size": tuple(patch_size),
        "width": width,
        "depth": blocks(shapes, re.compile(block.replace(".", r"\.").replace("{i}", r"(\d+)") + r"\.")),
        "mlp_dim": need(shapes, f"{block.format(i=0)}.{fc1}.weight", 2)[0],
        "out_channels": need(shapes, f"{last}.weight", 2)[0] // math.prod(patch_size),
        "num_classes": need(shapes, table, 2)[0] - 1,
        "time_scale": 1.0,
    }


def architecture(shapes, checkpoint):
    arguments = _sizes(shapes, PATCHES[0], "final_layer.linear", TABLE, BLOCK, "mlp.fc1")
    grid = square(need(shapes, "pos_embed", 3)[1])
    size = [side * pixels for side, pixels in zip(grid, arguments["patch_size"])]
    heads, width = HEADS.get(arguments["width"]), arguments["width"]
    missing = f"No tensor shows the number of heads, and no DiT of width {width} is published: pass num_heads."
    origins = {"num_heads": f"published DiTs of width {width}" if heads else Missing(missing)}
    return {**arguments, "image_size": tuple(size), "num_heads": heads, "norm": {"epsilon": 1e-6}}, {}, origins


def of_diffusers(shapes, checkpoint):
    config, block = checkpoint.config, COPIES.format(i=0)
    lacking = [name for name in NEEDED if name not in config]
    if lacking:
        raise ValueError(
            f"A file of diffusers needs its {CONFIG} in the same folder: no tensor shows {' and '.join(lacking)}. "
            f"Received: {str(checkpoint.path)!r}"
        )
    other = [f"{k}={config[k]!r}" for k, value in COMPUTED.items() if config.get(k, value) != value]
    if other:
        raise ValueError(f"A DiT with {', '.join(other)} cannot be loaded: its images would be wrong.")
    heads, channels, width = config["num_attention_heads"], config.get("attention_head_dim"), shapes[PATCHES[1]][0]
    if channels is not None and heads is not None and heads * channels != width:
        raise ValueError(f"{CONFIG} says {heads} heads of {channels} channels, and the weights have {width}.")
    table = f"{block}.class_embedder.embedding_table.weight"
    arguments = _sizes(shapes, PATCHES[1], "proj_out_2", table, THEIRS, "ff.net.0.proj")
    arguments |= {
        "image_size": config["sample_size"],
        "num_heads": heads,
        "norm": {"epsilon": 1e-6},
        "mlp_epsilon": config.get("norm_eps", 1e-5),
        "time_closed": True,
    }
    return arguments, {}, dict.fromkeys(("num_heads", "image_size", "mlp_epsilon"), CONFIG)


FORMAT = Format(
    name="dit",
    rows=ROWS,
    detect=lambda names: PATCHES[0] in names and TABLE in names,
    architecture=architecture,
    resample="bilinear",
)
IN_DIFFUSERS = FORMAT._replace(
    name="diffusers-dit",
    rows=DIFFUSERS_ROWS,
    detect=lambda names: PATCHES[1] in names and "proj_out_2.weight" in names,
    architecture=of_diffusers,
)
FORMATS = (FORMAT, IN_DIFFUSERS)
