"""Names in Hugging Face transformers' files: GPT-2 as the decoder of a VisionEncoderDecoderModel."""

import re

from keras_vit.checkpoints.formats.decoder_config import activation, marks_of, need_options, read_decoder
from keras_vit.checkpoints.formats.huggingface_text import FORMAT as TOWERS_FORMAT
from keras_vit.checkpoints.formats.transformers_config import CONFIG
from keras_vit.checkpoints.tables import (
    LINEAR,
    SAME,
    Row,
    blocks,
    dense,
    need,
    parted,
    torch_dense,
    torch_norm,
)

BLOCK = "h.{i}"
QKV = [f"block_{{i}}/attention/{part}" for part in ("query", "key", "value")]
KV = [f"block_{{i}}/cross/{part}" for part in ("key", "value")]


def matrices(ours, theirs):
    """Two rows: a kernel and a bias, whose matrix is (in, out) as ours."""
    return dense(ours, theirs, ".weight", ".bias", SAME)


def several(ours, theirs):
    """Two rows: several of our layers, side by side in one of theirs."""
    split = parted(SAME, len(ours), axis=-1)
    kinds = {"kernel": "weight", "bias": "bias"}
    return [Row(tuple(f"{part}/{kind}" for part in ours), f"{theirs}.{name}", split) for kind, name in kinds.items()]


ROWS = (
    Row("words/word_embedding", "wte.weight", SAME),
    Row("words/position_embedding", "wpe.weight", SAME),
    *torch_dense("project_context", "enc_to_dec_proj"),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.ln_1"),
    *several(QKV, f"{BLOCK}.attn.c_attn"),
    *matrices("block_{i}/attention/proj", f"{BLOCK}.attn.c_proj"),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.ln_cross_attn"),
    *matrices("block_{i}/cross/query", f"{BLOCK}.crossattention.q_attn"),
    *several(KV, f"{BLOCK}.crossattention.c_attn"),
    *matrices("block_{i}/cross/proj", f"{BLOCK}.crossattention.c_proj"),
    *torch_norm("block_{i}/norm3", f"{BLOCK}.ln_2"),
    *matrices("block_{i}/mlp/fc1", f"{BLOCK}.mlp.c_fc"),
    *matrices("block_{i}/mlp/fc2", f"{BLOCK}.mlp.c_proj"),
    *torch_norm("norm", "ln_f"),
    Row("head/kernel", "lm_head.weight", LINEAR),
)
ALIASES = ((r"^decoder\.(transformer\.)?", ""),)
DEFAULTS = {"n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}
COMPUTED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}  # else attention is another


def architecture(shapes, checkpoint):
    vocabulary, width = need(shapes, "wte.weight", 2)
    options = read_decoder(checkpoint.config, "gpt2", DEFAULTS, {"n_embd": width})
    need_options(options, COMPUTED)
    project = "enc_to_dec_proj.weight" in shapes
    key = need(shapes, f"{BLOCK.format(i=0)}.crossattention.c_attn.weight", 2)[0]
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, "wpe.weight", 2)[0],
        "width": width,
        "depth": blocks(shapes, re.compile(r"h\.(\d+)\.")),
        "num_heads": options["n_head"],
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}.mlp.c_fc.weight", 2)[1],
        "context_width": need(shapes, "enc_to_dec_proj.weight", 2)[1] if project else key,
        "project_context": project,
        "norm_order": "pre",
        "gelu": activation(options["activation_function"]),
        "epsilon": options["layer_norm_epsilon"],
        "tied": options["tie_word_embeddings"],
    }
    return (
        arguments,
        {"tokens": "gpt2", **marks_of(checkpoint.config)},
        dict.fromkeys(("num_heads", "gelu", "epsilon"), CONFIG),
    )


FORMAT = TOWERS_FORMAT._replace(
    name="huggingface-gpt2",
    rows=ROWS,
    detect=lambda names: "decoder.transformer.wte.weight" in names,
    aliases=ALIASES,
    architecture=architecture,
    ignored=r"encoder\..*|h\.\d+\.(attn|crossattention)\.(masked_)?bias",
    head_names=r"lm_head\.weight",  # the table of words, where it is tied
)
