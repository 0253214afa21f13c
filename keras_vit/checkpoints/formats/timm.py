"""Names in timm's state dicts: ViT, DeiT, DeiT-III, registers, attention pooling, hybrids."""

import re

import numpy as np

from keras_vit.checkpoints.formats import timm_config
from keras_vit.checkpoints.formats.timm_architecture import BLOCK, DISTANCES, IN, MIXED, architecture, of_dino, of_moco
from keras_vit.checkpoints.tables import (
    CONV,
    FLAT_TO_HEADS,
    LINEAR,
    LINEAR_HEADS_IN,
    LINEAR_HEADS_OUT,
    OUR_UNIT,
    SAME,
    UNBIASED,
    Form,
    Format,
    Row,
    blocks,
    joined,
    need,
    parted,
    renamed,
    shared,
    torch_dense,
    torch_norm,
)

UNIT = "patch_embed.backbone.stages.{i}.blocks.{j}"
WITHOUT_KEY = Form(
    lambda arrays, heads: [np.concatenate(np.split(arrays[0], 3)[::2])],
    lambda ours, heads: [np.concatenate(np.insert(np.split(ours[0], 2), 1, 0, axis=0))],
)
KEY_VALUE = ("pool/attention/key", "pool/attention/value")


def _fused(form):
    """A form of the MLP's first layer and the queries, keys and values, one layer in timm's parallel blocks.

    A matrix of their last array shows the width.
    """

    def read(arrays, heads):
        fused, width = arrays[0], arrays[-1].shape[1]
        return form.read(np.split(fused, [len(fused) - 3 * width]), heads)

    return Form(read, lambda ours, heads: [np.concatenate(form.write(ours, heads))])


FUSED = ("block_{i}/mlp/fc1", "block_{i}/attention/qkv")
NORMS = {
    "encoder/norm": "patch_embed.norm",
    "norm_pre": "norm_pre",
    "block_{i}/norm1": f"{BLOCK}.norm1",
    "block_{i}/attention/q_norm": f"{BLOCK}.attn.q_norm",
    "block_{i}/attention/k_norm": f"{BLOCK}.attn.k_norm",
    "block_{i}/attention/norm": f"{BLOCK}.attn.norm",
    "block_{i}/norm2": f"{BLOCK}.norm2",
    "block_{i}/mlp/norm": f"{BLOCK}.mlp.norm",
    "norm": "{norm}",
}
SHARED = "rel_pos_bias.relative_position_bias_table"  # of all blocks, in files of BEiT's training
BLOCKS = re.compile(r"blocks\.(\d+)\.")
RMS = re.compile(r"((?:^|[._])norm[12]?(?:_pre)?)\.weight$")  # in files without biases: norms by the root mean square

ROWS = (
    Row("stem/root/kernel", "{root}.conv.weight", CONV),
    *torch_norm("stem/root_norm", "{root}.norm"),
    *(Row(f"{OUR_UNIT}/conv{k}/kernel", f"{UNIT}.conv{k}.weight", CONV) for k in (1, 2, 3)),
    *(row for k in (1, 2, 3) for row in torch_norm(f"{OUR_UNIT}/norm{k}", f"{UNIT}.norm{k}")),
    Row(f"{OUR_UNIT}/shortcut/kernel", f"{UNIT}.downsample.conv.weight", CONV),
    *torch_norm(f"{OUR_UNIT}/shortcut_norm", f"{UNIT}.downsample.norm"),
    Row("encoder/projection/kernel", "patch_embed.proj.weight", CONV),
    Row("encoder/projection/bias", "patch_embed.proj.bias", SAME),
    Row("encoder/class_token", "cls_token", SAME),
    Row("encoder/distillation_token", "dist_token", SAME),
    Row("encoder/register_tokens", "reg_token", SAME),
    Row("encoder/position_embedding", "pos_embed", SAME),
    *(
        row
        for names in NORMS.items()
        for row in (*torch_norm(*names), Row(f"{names[0]}/scale", f"{names[1]}.rms", SAME))
    ),
    *torch_dense("block_{i}/attention/qkv", f"{BLOCK}.attn.qkv"),
    Row("block_{i}/attention/qv_bias", (f"{BLOCK}.attn.q_bias", f"{BLOCK}.attn.v_bias"), joined(SAME, 2)),  # DINOv3
    Row("block_{i}/attention/qv_bias", f"{BLOCK}.attn.qkv.masked_bias", WITHOUT_KEY),  # of its authors
    Row("block_{i}/attention/qkv/kernel", tuple(f"{BLOCK}.attn.{part}_proj.weight" for part in "qkv"), joined(LINEAR)),
    Row("block_{i}/attention/qv_bias", tuple(f"{BLOCK}.attn.{part}_proj.bias" for part in "qv"), joined(SAME, 2)),
    Row("block_{i}/attention/distances/table", f"{BLOCK}.{DISTANCES}", SAME),  # BEiT
    Row("block_{i}/attention/rotate/frequencies", f"{BLOCK}.attn.{MIXED}", SAME),  # RoPE-ViT
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.attn.proj"),
    Row("block_{i}/scale1/gamma", f"{BLOCK}.ls1.gamma", SAME),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.mlp.fc1"),
    Row("block_{i}/mlp/fc1/kernel", (f"{BLOCK}.mlp.fc1_g.weight", f"{BLOCK}.mlp.fc1_x.weight"), joined(LINEAR, 2)),
    Row("block_{i}/mlp/fc1/bias", (f"{BLOCK}.mlp.fc1_g.bias", f"{BLOCK}.mlp.fc1_x.bias"), joined(SAME, 2)),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.fc2"),
    Row(tuple(f"{part}/kernel" for part in FUSED), f"{BLOCK}.{IN}.weight", _fused(LINEAR)),
    Row(tuple(f"{part}/bias" for part in FUSED), (f"{BLOCK}.{IN}.bias", f"{BLOCK}.{IN}.weight"), _fused(SAME)),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.ls2.gamma", SAME),
    Row("pool/probe", "attn_pool.latent", SAME),
    Row("pool/attention/query/kernel", "attn_pool.q.weight", LINEAR_HEADS_IN),
    Row("pool/attention/query/bias", "attn_pool.q.bias", FLAT_TO_HEADS),
    Row(tuple(f"{part}/kernel" for part in KEY_VALUE), "attn_pool.kv.weight", parted(LINEAR_HEADS_IN)),
    Row(tuple(f"{part}/bias" for part in KEY_VALUE), "attn_pool.kv.bias", parted(FLAT_TO_HEADS)),
    Row("pool/attention/attention_output/kernel", "attn_pool.proj.weight", LINEAR_HEADS_OUT),
    Row("pool/attention/attention_output/bias", "attn_pool.proj.bias", SAME),
    *torch_norm("pool/norm", "attn_pool.norm"),
    *torch_dense("pool/mlp/fc1", "attn_pool.mlp.fc1"),
    *torch_dense("pool/mlp/fc2", "attn_pool.mlp.fc2"),
    *torch_dense("head", "head"),
    Row(("head/kernel", "head/bias"), "head.weight", UNBIASED),
    *torch_dense("head_distilled", "head_dist"),
)

# Names in the authors' own files that differ from timm's: DeiT-III, DINOv2, DINOv3, EVA-02, AIMv2.
ALIASES = (
    (r"^preprocessor\.patchifier\.", "patch_embed."),
    (r"^preprocessor\.", ""),
    (r"^trunk\.", ""),
    (r"^post_trunk_norm\.", "norm."),
    (r"^head\.proj\.", "head."),  # OpenCLIP's projection of timm's models
    (r"^blocks\.\d+\.(\d+)\.", r"blocks.\1."),  # DINOv2's training keeps blocks in chunks, numbered through
    (r"\.norm_([12])\.", r".norm\1."),
    (r"\.gamma_([12])$", r".ls\1.gamma"),
    (r"^(register|storage)_tokens$", "reg_token"),
    (r"\.mlp\.w1\.", ".mlp.fc1_g."),
    (r"\.mlp\.w2\.", ".mlp.fc1_x."),
    (r"\.mlp\.w12\.", ".mlp.fc1."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
    (r"\.mlp\.fc3\.", ".mlp.fc1_x."),
    (r"\.inner_attn_ln\.", ".norm."),
    (r"\.in_norm\.", ".norm1."),  # parallel blocks, as of ViT-22B
    (r"^(blocks\.\d+)\.([qk]_norm)\.", r"\1.attn.\2."),
    (r"\.mlp_bias$", ".mlp.fc1.bias"),
    (r"\.attn_out_proj\.", ".attn.proj."),
    (r"\.mlp_out_proj\.", ".mlp.fc2."),
    (r"\.ls\.gamma$", ".ls1.gamma"),
    (r"\.ffn_ln\.", ".norm."),
)

IGNORED = (  # parts of training, and what only repeats the architecture
    "mask_token",
    r"(lm_head|cls_pt_layers|moco_head)\..*",
    r"decoder_.*",
    r"rope_embed\.periods",
    r"local_cls_norm\..*",
    r".*\.bias_mask",
    r"(blocks\.\d+\.attn\.)?rope\.freqs_(cos|sin)",
    r".*\.relative_position_index",
)


def detect(names):
    return not {"patch_embed.proj.weight", "preprocessor.patchifier.proj.weight"}.isdisjoint(names)


def detect_dino(names):
    """Returns whether a file has what only those of DINO's, iBOT's and DINOv2's authors have, and no registers."""
    of_dinov2 = {"mask_token", "blocks.0.ls1.gamma"} <= set(names) and "register_tokens" not in names
    return detect(names) and "pos_embed" in names and (of_dinov2 or any(n.startswith("head.last_layer") for n in names))


def detect_moco(names):
    """Returns whether a file is of MoCo v3's training, whose mean is ImageNet's."""
    return detect(names) and any(name.startswith("moco_head.") for name in names)


def canonical(shapes):
    names = renamed(shapes, ALIASES)
    masked = {name for name in names if f"{name}_mask" in names}  # DINOv3's biases, whose part of the key is masked
    names = {name.replace(".bias", ".masked_bias") if name in masked else name: names[name] for name in names}
    if "blocks.0.mlp.fc1_x.weight" in names:  # whose gate AIMv2's authors call `fc1`
        names = {name.replace(".mlp.fc1.", ".mlp.fc1_g."): place for name, place in names.items()}
    if "blocks.0.norm1.weight" in names and "blocks.0.norm1.bias" not in names:
        names = {RMS.sub(r"\1.rms", name): place for name, place in names.items()}
    names = shared(names, SHARED, f"{BLOCK}.{DISTANCES}", blocks(names, BLOCKS) if SHARED in names else 0)
    if MIXED in names:
        place = names.pop(MIXED)
        _, depth, _, _ = need(shapes, place, 4)  # of both axes, blocks, heads, pairs
        names |= {f"{BLOCK.format(i=i)}.attn.{MIXED}": (place, i, 1) for i in range(depth)}
    return names


def placeholders(arguments):
    stem = arguments["stem"]
    return {
        "norm": "fc_norm" if arguments["final_norm"] == "after" else "norm",
        "root": "patch_embed.backbone" + (".stem" if getattr(stem, "stages", ()) else ""),
    }


FORMAT = Format(
    name="timm",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=timm_config.express,
    placeholders=placeholders,
    ignored="|".join(IGNORED),
    head_names=r"head\..*|head_dist\..*|pre_logits\..*",
    resample="bicubic-antialias",
    resample_patches="bicubic-antialias",
)
DINO_FORMAT = FORMAT._replace(
    name="timm-dino",
    detect=detect_dino,
    architecture=of_dino,
    resample="bicubic-offset",
    express=None,
)
MOCO_FORMAT = FORMAT._replace(name="timm-moco", detect=detect_moco, architecture=of_moco, express=None)
