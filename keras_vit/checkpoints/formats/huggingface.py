"""Names in Hugging Face transformers' files: ViT and DeiT, and what has their names, such as I-JEPA."""

import math
import re

import numpy as np

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.transformers_config import CONFIG, PROCESSOR
from keras_vit.checkpoints.tables import (
    CONV,
    LINEAR,
    SAME,
    UNBIASED,
    Assumed,
    Format,
    Row,
    blocks,
    classes_of,
    grid,
    joined,
    need,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

BLOCK = "encoder.layer.{i}"
PROJECTION = "visual_projection"  # into the space of texts, in a model of two towers
TEXT = r"text_model\..*|text_projection\..*|logit_(scale|bias)"  # of the other tower
QKV = tuple(f"{BLOCK}.attention.attention.{part}" for part in ("query", "key", "value"))


EMBEDDINGS = (
    Row("encoder/projection/kernel", "embeddings.patch_embeddings.projection.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embeddings.projection.bias", SAME),
    Row("encoder/class_token", "embeddings.cls_token", SAME),
    Row("encoder/position_embedding", "embeddings.position_embeddings", SAME),
)
ATTENTION = (
    Row("block_{i}/attention/qkv/kernel", tuple(f"{part}.weight" for part in QKV), joined(LINEAR)),
    Row("block_{i}/attention/qkv/bias", tuple(f"{part}.bias" for part in QKV), joined(SAME)),
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.attention.output.dense"),
)
ROWS = (
    *EMBEDDINGS,
    Row("encoder/distillation_token", "embeddings.distillation_token", SAME),
    Row("encoder/register_tokens", "embeddings.distillation_token", SAME),  # DeiT with one head: an unused token
    *torch_norm("block_{i}/norm1", f"{BLOCK}.layernorm_before"),
    *ATTENTION,
    *torch_norm("block_{i}/norm2", f"{BLOCK}.layernorm_after"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.intermediate.dense"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.output.dense"),
    *torch_norm("norm", "layernorm"),
    *torch_dense("pre_logits", "pooler.dense"),
    *torch_dense("head", "{head}"),
    Row(("head/kernel", "head/bias"), "{head}.weight", UNBIASED),
    Row(("head/kernel", "head/bias"), f"{PROJECTION}.weight", UNBIASED),
    *torch_dense("head_distilled", "distillation_classifier"),
)

# Version 5 has other names in memory; its `save_pretrained` writes the older ones.
IN_MEMORY = (
    (r"^layers\.", "encoder.layer."),
    (r"\.attention\.([qkv])_proj\.", lambda m: f".attention.attention.{dict(q='query', k='key', v='value')[m[1]]}."),
    (r"\.attention\.o_proj\.", ".attention.output.dense."),
)
ALIASES = (
    (r"^(vit|deit|ijepa|vision_model)\.", ""),
    (r"^decoder\.decoder_encoder\.layer\.", "decoder.decoder_layers."),  # version 5 writes a masked autoencoder's so
    *IN_MEMORY,
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
)
# The model types that `vit` computes, and what transformers assumes where their files say nothing.
BARE = {"hidden_act": "gelu", "layer_norm_eps": 1e-12}
STATED = {**BARE, "num_attention_heads": 12}
DEFAULTS = dict.fromkeys(("vit", "deit", "vit_mae", "dpt", "flava_image_model", "ijepa", "yolos"), STATED)
DEFAULTS |= {None: BARE, "vit_msn": {**STATED, "layer_norm_eps": 1e-6}}


def detect(names):
    patches = any(name.endswith("embeddings.patch_embeddings.projection.weight") for name in names)
    others = (".layer_scale1.lambda1", ".lambda_1")  # DINOv2's, BEiT's
    return patches and not any(name.endswith(others) for name in names)


def architecture(shapes, checkpoint, kind=None):
    width, channels, *patch_size = need(shapes, "embeddings.patch_embeddings.projection.weight", 4)
    block = BLOCK.format(i=0)
    tower = transformers_config.part_of(checkpoint.config, "vision")
    config_arguments, origins = transformers_config.read_model(tower, width, DEFAULTS)
    distillation, class_token = "embeddings.distillation_token" in shapes, "embeddings.cls_token" in shapes
    of_mae = any(name.startswith("decoder.") for name in shapes)
    of_imagenet = of_mae or checkpoint.config.get("model_type") in ("vit_mae", "vit_msn")
    kind = kind or ("DeiT" if distillation else "MAE" if of_imagenet else "ViT")
    if getattr(checkpoint, "writes", False) and not checkpoint.processor:
        kind = "ViT"  # TrOCR's DeiT takes whole lines of text, squashed, with ViT's mean
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, kind)
    if kind == "ViT" and not checkpoint.processor:
        prepared["mean"] = Assumed("ViT's; DINO's and others' have ImageNet's, in preprocessor_config.json")
    head = next((n for n in ("classifier", "cls_classifier", PROJECTION) if f"{n}.weight" in shapes), None)
    pooler = shapes.get("pooler.dense.weight", ()) if head == PROJECTION else ()  # which comes before it
    one_head = distillation and head == "classifier"
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{block}.intermediate.dense.weight", 2)[0],
        "block": {"qkv_bias": f"{QKV[0].format(i=0)}.bias" in shapes},
        "tokens": {
            "class_token": class_token,  # I-JEPA has none
            "class_position": True,
            "distilled": distillation and not one_head,
            "registers": int(one_head),
        },
        "pooling": "token" if class_token else "gap",
        **({"representation_size": pooler[0]} if pooler else {}),
        "num_classes": classes_of(shapes, head),
    }
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared


def express(arguments, arrays):
    """Returns the arrays under the names of `save_pretrained`, and the two JSON files for the directory."""
    deit = arguments["tokens"]["distilled"] or arguments["tokens"]["registers"] == 1
    kind, has_head = "DeiT" if deit else "ViT", bool(arguments["num_classes"])
    if {"embeddings.position_embeddings", "embeddings.cls_token"} - set(arrays):
        raise ValueError("Hugging Face's ViT must have a class token and a table of positions. The model lacks one.")
    position = arrays["embeddings.position_embeddings"]
    missing = math.prod(grid(arguments)) + 1 + deit - position.shape[1]  # transformers gives every token a position
    arrays["embeddings.position_embeddings"] = np.pad(position, ((0, 0), (max(missing, 0), 0), (0, 0)))
    if has_head:
        arrays = {n if "classifier." in n else f"{kind.lower()}.{n}": array for n, array in arrays.items()}
    suffix = "ForImageClassification" + "WithTeacher" * bool(arguments["tokens"]["distilled"]) if has_head else "Model"
    return arrays, {
        CONFIG: transformers_config.write_model(kind + suffix, kind.lower(), arguments),
        PROCESSOR: transformers_config.write_processor(kind, arguments),
    }


FORMAT = Format(
    name="huggingface",
    rows=ROWS,
    detect=detect,
    aliases=ALIASES,
    architecture=architecture,
    express=express,
    placeholders=lambda arguments: {"head": "cls_classifier" if arguments["tokens"]["distilled"] else "classifier"},
    ignored=rf"embeddings\.mask_token|pooler\..*|decoder\..*|{TEXT}",
    head_names=rf"((cls_|distillation_)?classifier|{PROJECTION})\..*",
)
