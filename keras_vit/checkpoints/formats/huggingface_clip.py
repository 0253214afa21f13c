"""Names in Hugging Face transformers' files: the image towers of CLIP, SigLIP, and SigLIP 2 of one image size."""

import math
import re

import numpy as np

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.transformers_config import CONFIG, PROCESSOR
from keras_vit.checkpoints.tables import (
    CONV,
    FLAT_TO_HEADS,
    LINEAR,
    LINEAR_HEADS_IN,
    LINEAR_HEADS_OUT,
    SAME,
    UNBIASED,
    Assumed,
    Format,
    Row,
    blocks,
    each,
    grid,
    joined,
    need,
    parted,
    renamed,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

BLOCK = "encoder.layers.{i}"
QKV = tuple(f"{BLOCK}.self_attn.{part}_proj" for part in "qkv")
POOL = tuple(f"pool/attention/{part}" for part in ("query", "key", "value"))
TABLE = each(lambda a, heads: a[None], lambda a, heads: a[0])  # (tokens, width)
TOKEN = each(lambda a, heads: a[None, None], lambda a, heads: a.reshape(-1))  # (width,)


ROWS = (
    Row("encoder/projection/kernel", "embeddings.patch_embedding.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embedding.bias", SAME),
    Row("encoder/class_token", "embeddings.class_embedding", TOKEN),
    Row("encoder/position_embedding", "embeddings.position_embedding.weight", TABLE),
    *torch_norm("norm_pre", "pre_layrnorm"),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.layer_norm1"),
    Row("block_{i}/attention/qkv/kernel", tuple(f"{part}.weight" for part in QKV), joined(LINEAR)),
    Row("block_{i}/attention/qkv/bias", tuple(f"{part}.bias" for part in QKV), joined(SAME)),
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.self_attn.out_proj"),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.layer_norm2"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.mlp.fc1"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.fc2"),
    *torch_norm("norm", "post_layernorm"),
    Row("pool/probe", "head.probe", SAME),
    Row(tuple(f"{part}/kernel" for part in POOL), "head.attention.in_proj_weight", parted(LINEAR_HEADS_IN, 3)),
    Row(tuple(f"{part}/bias" for part in POOL), "head.attention.in_proj_bias", parted(FLAT_TO_HEADS, 3)),
    Row("pool/attention/attention_output/kernel", "head.attention.out_proj.weight", LINEAR_HEADS_OUT),
    Row("pool/attention/attention_output/bias", "head.attention.out_proj.bias", SAME),
    *torch_norm("pool/norm", "head.layernorm"),
    *torch_dense("pool/mlp/fc1", "head.mlp.fc1"),
    *torch_dense("pool/mlp/fc2", "head.mlp.fc2"),
    *torch_dense("head", "classifier"),
    Row(("head/kernel", "head/bias"), "classifier.weight", UNBIASED),
    Row(("head/kernel", "head/bias"), "visual_projection.weight", UNBIASED),
)
TEXT = r"text_model\..*|text_projection\..*|logit_(scale|bias)"
ALIASES = ((r"^vision_model\.", ""), (r"^pre_layernorm\.", "pre_layrnorm."), (r"^encoder\.layer\.", "encoder.layers."))
CLIP = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "num_attention_heads": 12}
SIGLIP = {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "num_attention_heads": 12}
# Whose image towers are CLIP's.
CLIP_KINDS = ("clip", "metaclip_2", "chinese_clip", "altclip", "clipseg", "git", "owlvit", "owlv2")
OTHERS = {"owlvit": "OWL-ViT", "owlv2": "OWLv2", "clipseg": "CLIPSeg"}  # which prepare images in their own way
DEFAULTS = {
    **dict.fromkeys((name for kind in CLIP_KINDS for name in (kind, f"{kind}_vision_model")), CLIP),
    "siglip": SIGLIP,
    "siglip_vision_model": SIGLIP,
}
BARE = {"CLIP": {**CLIP, "num_attention_heads": None}, "SigLIP": {**SIGLIP, "num_attention_heads": None}}


def detect(names):
    return any(name.endswith("embeddings.patch_embedding.weight") for name in names)


def canonical(shapes):
    names = renamed(shapes, ALIASES)
    if "classifier.weight" not in names:
        return names
    unused = "post_layernorm." if "pre_layrnorm.weight" in names else "head."  # by transformers' classifiers
    return {name: place for name, place in names.items() if not name.startswith(unused)}


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, "embeddings.patch_embedding.weight", 4)
    config = checkpoint.config
    kind = "CLIP" if "pre_layrnorm.weight" in shapes else "SigLIP"
    tower = transformers_config.part_of(config, "vision")
    config_arguments, origins = transformers_config.read_model(tower, width, DEFAULTS | {None: BARE[kind]})
    if not config and kind == "CLIP":
        origins["block.gelu"] = Assumed("files of CLIP have 'exact' or 'quick'")
    prepares = OTHERS.get(config.get("model_type"), kind)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, prepares)
    head = next((n for n in ("classifier.weight", "visual_projection.weight") if n in shapes), None)
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layers\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}.mlp.fc2.weight", 2)[1],
        "tokens": {"class_token": kind == "CLIP", "class_position": True, "pre_norm": kind == "CLIP"},
        **_pooling(shapes, kind),
        "num_classes": need(shapes, head, 2)[0] if head else 0,
    }
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared | left_out(checkpoint)


def _pooling(shapes, kind):
    """Returns where the vector of an image is from: transformers' classifiers take the mean of the patches."""
    if "classifier.weight" in shapes:
        return {"pooling": "gap", "final_norm": None if kind == "CLIP" else "before"}
    attends = "head.probe" in shapes
    return {"pooling": "token" if kind == "CLIP" else "map" if attends else "gap", "final_norm": "before"}


def left_out(checkpoint):
    """Says that a file's text tower is passed over."""
    count = sum(re.fullmatch(TEXT, name) is not None for name in checkpoint.shapes)
    return {"text": f"passed over: {count} tensors of the text tower"} if count else {}


def express(arguments, arrays):
    """Returns the arrays under the names of published files, and the two JSON files for the directory."""
    kind = "CLIP" if arguments["tokens"]["pre_norm"] else "Siglip"
    if "embeddings.position_embedding.weight" not in arrays:
        raise ValueError("Hugging Face's CLIP and SigLIP must have a table of positions. Received: position=None")
    table = arrays["embeddings.position_embedding.weight"]
    class_token = arguments["tokens"]["class_token"]  # CLIP gives it a position
    missing = math.prod(grid(arguments)) + class_token - len(table)
    arrays["embeddings.position_embedding.weight"] = np.pad(table, ((max(missing, 0), 0), (0, 0)))
    projection, bias = (arrays.pop(f"classifier.{part}", None) for part in ("weight", "bias"))
    if projection is not None and (kind == "Siglip" or bias.any()):
        raise ValueError(
            "Hugging Face's image towers must have num_classes=0, but for CLIP's projection without a bias. "
            f"Received: num_classes={arguments['num_classes']}"
        )
    arrays = {f"vision_model.{name}": array for name, array in arrays.items()}
    arrays |= {} if projection is None else {"visual_projection.weight": projection}
    architecture = f"{kind}VisionModel{'WithProjection' if projection is not None else ''}"
    config = transformers_config.write_model(architecture, f"{kind.lower()}_vision_model", arguments)
    config |= {"projection_dim": arguments["num_classes"]} if projection is not None else {}
    config |= {"vision_use_head": arguments["pooling"] == "map"} if kind == "Siglip" else {}
    return arrays, {CONFIG: config, PROCESSOR: transformers_config.write_processor(kind, arguments)}


FORMAT = Format(
    name="huggingface-clip",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=express,
    ignored=rf"{TEXT}|embeddings\.position_ids",
    head_names=r"classifier\..*|visual_projection\..*",
    suits=lambda arguments: arguments["tokens"]["pre_norm"] or arguments["pooling"] == "map",
)
