"""Names in Hugging Face transformers' files: TrOCR's decoder in a VisionEncoderDecoderModel."""

import re

import numpy as np

from keras_vit.checkpoints.formats.decoder_config import activation, marks_of, read_decoder
from keras_vit.checkpoints.formats.huggingface_text import FORMAT as TOWERS_FORMAT
from keras_vit.checkpoints.formats.transformers_config import CONFIG
from keras_vit.checkpoints.tables import LINEAR, SAME, Row, blocks, each, need, torch_dense, torch_norm

BLOCK = "layers.{i}"
SHIFT = 2  # rows of the table of positions that no word uses
SHIFTED = each(lambda a, heads: a[SHIFT:], lambda a, heads: np.pad(a, ((SHIFT, 0), (0, 0))))
ATTENTIONS = {"attention": "self_attn", "cross": "encoder_attn"}
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "proj": "out_proj"}
NORMS = {"norm1": "self_attn_layer_norm", "norm2": "encoder_attn_layer_norm", "norm3": "final_layer_norm"}
ROWS = (
    Row("words/word_embedding", "embed_tokens.weight", SAME),
    Row("words/position_embedding", "embed_positions.weight", SHIFTED),
    *torch_norm("norm_pre", "layernorm_embedding"),
    *torch_dense("project_context", "enc_to_dec_proj"),
    *(
        row
        for ours, theirs in ATTENTIONS.items()
        for part, name in PARTS.items()
        for row in torch_dense(f"block_{{i}}/{ours}/{part}", f"{BLOCK}.{theirs}.{name}")
    ),
    *(row for ours, theirs in NORMS.items() for row in torch_norm(f"block_{{i}}/{ours}", f"{BLOCK}.{theirs}")),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.fc1"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.fc2"),
    Row("head/kernel", "output_projection.weight", LINEAR),
)
ALIASES = ((r"^decoder\.(model\.decoder\.)?", ""),)
DEFAULTS = {
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "use_learned_position_embeddings": True,
    "scale_embedding": False,
    "layernorm_embedding": True,
    "max_position_embeddings": 512,
    "pad_token_id": 1,
    "tie_word_embeddings": True,
}
EPSILON = 1e-5  # PyTorch's: no file says it


def architecture(shapes, checkpoint):
    vocabulary, width = need(shapes, "embed_tokens.weight", 2)
    options = read_decoder(checkpoint.config, "trocr", DEFAULTS, {"d_model": width})
    project, learned = "enc_to_dec_proj.weight" in shapes, options["use_learned_position_embeddings"]
    key = need(shapes, f"{BLOCK.format(i=0)}.encoder_attn.k_proj.weight", 2)[1]
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, "embed_positions.weight", 2)[0] - SHIFT
        if learned
        else options["max_position_embeddings"],
        "width": width,
        "depth": blocks(shapes, re.compile(r"layers\.(\d+)\.")),
        "num_heads": options["decoder_attention_heads"],
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}.fc1.weight", 2)[0],
        "context_width": need(shapes, "enc_to_dec_proj.weight", 2)[1] if project else key,
        "project_context": project,
        "norm_order": "post",
        "gelu": activation(options["activation_function"]),
        "epsilon": EPSILON,
        "positions": "learned" if learned else "sinusoidal",
        "pad": None if learned else options["pad_token_id"],
        "scale_words": options["scale_embedding"],
        "norm_words": options["layernorm_embedding"],
        "tied": options["tie_word_embeddings"],
    }
    return arguments, {"tokens": "roberta", **marks_of(checkpoint.config)}, dict.fromkeys(("num_heads", "gelu"), CONFIG)


FORMAT = TOWERS_FORMAT._replace(
    name="huggingface-trocr",
    rows=ROWS,
    detect=lambda names: "decoder.model.decoder.embed_tokens.weight" in names,
    aliases=ALIASES,
    architecture=architecture,
    ignored=r"encoder\..*|embed_positions\._float_tensor",
    head_names=r"output_projection\.weight",
)
