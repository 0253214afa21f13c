"""Names in the files of CLIP's own code and OpenCLIP's: the text tower, with `text.` before its names or without."""

import re

from keras_vit.checkpoints.formats import openai, timm
from keras_vit.checkpoints.formats.huggingface_text import FORMAT as TOWERS_FORMAT
from keras_vit.checkpoints.formats.huggingface_text import VOCABULARY, published_heads
from keras_vit.checkpoints.tables import SAME, Assumed, Missing, Row, blocks, need, torch_dense, torch_norm

WORDS, POSITIONS = "token_embedding.weight", "positional_embedding"
ALIASES = ((r"^text\.", ""), *openai.ALIASES)
ROWS = (
    Row("words/word_embedding", WORDS, SAME),
    Row("words/position_embedding", POSITIONS, SAME),
    *(row for row in timm.ROWS if str(row.ours).startswith("block_{i}/")),
    *torch_norm("norm", "ln_final"),
    *torch_dense("projection", "text_projection"),
    Row("projection/kernel", "text_projection", SAME),  # a bare matrix, (in, out)
)
CONFIG = "open_clip_config.json"
POOLINGS = {"argmax": "largest", "last": "last", "first": "first", "eos": "end"}
# Options that tensors show, that `architecture` reads, or that are of tokens or of training. Others are refused.
OPTIONS = {
    "act_kwargs", "bos_id", "context_length", "eos_id", "final_ln_after_pool", "heads", "hf_model_pretrained",
    "hf_tokenizer_name", "layers", "mlp_ratio", "no_causal_mask", "norm_kwargs", "output_tokens", "pad_id", "pool_type",
    "proj_bias", "proj_type", "text_mask", "tokenizer_kwargs", "tokenizer_mode", "vocab_size", "width",
}  # fmt: skip
SIGLIP = {"causal": False, "pooling": "last", "epsilon": 1e-6}


def architecture(shapes, checkpoint):
    vocabulary, width = need(shapes, WORDS, 2)
    projection = None
    if "text_projection.weight" in shapes:  # a linear layer, (out, in)
        projection = need(shapes, "text_projection.weight", 2)[0]
    elif "text_projection" in shapes:  # a bare matrix, (in, out)
        projection = need(shapes, "text_projection", 2)[1]
    model = checkpoint.config.get("model_cfg") or {}
    description = _stated(model, model["text_cfg"]) if "text_cfg" in model else _bare(shapes, vocabulary, width)
    arguments, tokens, origins = description
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, POSITIONS, 2)[0],
        "width": width,
        "depth": blocks(shapes, re.compile(r"blocks\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{timm.BLOCK.format(i=0)}.mlp.fc2.weight", 2)[1],
        "projection": projection,
        "projection_bias": "text_projection.bias" in shapes,
        **arguments,
    }
    return arguments, tokens, origins


def _stated(model, tower):
    """Returns what `open_clip_config.json` says of the text tower."""
    other = [f"{name}={value!r}" for name, value in tower.items() if value and name not in OPTIONS]
    pool, gelu = tower.get("pool_type", "argmax"), tower.get("act_kwargs") or {}
    if pool not in POOLINGS:
        other.append(f"pool_type={pool!r}")
    if gelu not in ({}, {"approximate": "tanh"}, {"approximate": "none"}):
        other.append(f"act_kwargs={gelu!r}")
    if other:
        raise ValueError(f"OpenCLIP's text towers with {', '.join(other)} cannot be loaded: embeddings would be wrong.")
    causal = not tower.get("no_causal_mask", False)
    arguments = {
        "num_heads": tower.get("heads", 8),
        "causal": causal,
        "pooling": POOLINGS[pool],
        "gelu": "quick" if model.get("quick_gelu") else "tanh" if gelu.get("approximate") == "tanh" else "exact",
        "epsilon": (tower.get("norm_kwargs") or {}).get("eps", 1e-5),
    }
    arguments |= {"end": tower.get("eos_id", 2)} if pool == "eos" else {}
    named = "hf_tokenizer_name" in tower or "tokenizer_kwargs" in tower
    return arguments, {} if named or not causal else {"tokens": "clip"}, dict.fromkeys(arguments, CONFIG)


def _bare(shapes, vocabulary, width):
    """Returns what a file shows without a configuration: it is CLIP's, or SigLIP's by the bias of the logits."""
    num_heads, origin = published_heads(width)
    arguments, origins = {"num_heads": num_heads, "gelu": "exact"}, {"num_heads": origin}
    if "logit_bias" in shapes:
        origins["gelu"] = Assumed("files of SigLIP have 'exact' or 'tanh'")
        return arguments | SIGLIP, {}, origins | dict.fromkeys(SIGLIP, "SigLIP's rule")
    origins["gelu"] = Assumed("files of CLIP have 'exact' or 'quick'")
    if vocabulary != VOCABULARY:
        origins["causal"] = Missing(
            f"No tensor shows how words attend, and CLIP has {VOCABULARY} ids, not {vocabulary}. Put {CONFIG} next to "
            "the file, or pass causal and pooling."
        )
    return arguments | {"causal": True, "pooling": "largest", "epsilon": 1e-5}, {"tokens": "clip"}, origins


FORMAT = TOWERS_FORMAT._replace(
    name="openai-text",
    rows=ROWS,
    detect=lambda names: not {WORDS, f"text.{WORDS}"}.isdisjoint(names),
    aliases=ALIASES,
    architecture=architecture,
    ignored=r"visual\..*|logit_(scale|bias)|attn_mask|input_resolution|context_length|vocab_size",
)
