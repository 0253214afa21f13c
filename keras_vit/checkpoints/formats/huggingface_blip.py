"""Names in Hugging Face transformers' files: BLIP's image tower, and the text decoder of its captioning models."""

import re

from keras_vit.checkpoints.formats import huggingface_clip, transformers_config
from keras_vit.checkpoints.formats.decoder_config import activation
from keras_vit.checkpoints.formats.huggingface_text import FORMAT as TOWERS_FORMAT
from keras_vit.checkpoints.formats.transformers_config import part_of
from keras_vit.checkpoints.tables import (
    CONV,
    LINEAR,
    SAME,
    Format,
    Otherwise,
    Row,
    blocks,
    classes_of,
    need,
    renamed,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

LAYER = "encoder.layers.{i}"
IMAGE = (
    Row("encoder/projection/kernel", "embeddings.patch_embedding.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embedding.bias", SAME),
    Row("encoder/class_token", "embeddings.class_embedding", SAME),
    Row("encoder/position_embedding", "embeddings.position_embedding", SAME),
    *torch_norm("block_{i}/norm1", f"{LAYER}.layer_norm1"),
    *torch_dense("block_{i}/attention/qkv", f"{LAYER}.self_attn.qkv"),
    *torch_dense("block_{i}/attention/proj", f"{LAYER}.self_attn.projection"),
    *torch_norm("block_{i}/norm2", f"{LAYER}.layer_norm2"),
    *torch_dense("block_{i}/mlp/fc1", f"{LAYER}.mlp.fc1"),
    *torch_dense("block_{i}/mlp/fc2", f"{LAYER}.mlp.fc2"),
    *torch_norm("norm", "post_layernorm"),
    *torch_dense("head", "vision_proj"),
)
PROJECTION = "vision_proj"  # into the space of texts, of the model for retrieval
TWICE = Otherwise("its `visual_projection` is left out, since transformers' BLIP normalizes twice before it.")
BLIP = {"hidden_act": "gelu", "layer_norm_eps": 1e-5, "num_attention_heads": 12, "image_size": 384}
KINDS = {"blip": BLIP, "blip_vision_model": BLIP, None: BLIP | {"num_attention_heads": None}}
BLOCK = "encoder.layer.{i}"
ATTENTIONS = {"attention": "attention", "cross": "crossattention"}
TEXT = (
    Row("words/word_embedding", "embeddings.word_embeddings.weight", SAME),
    Row("words/position_embedding", "embeddings.position_embeddings.weight", SAME),
    Row("words/bias", "cls.predictions.bias", SAME),
    *torch_norm("norm_pre", "embeddings.LayerNorm"),
    *(
        row
        for ours, theirs in ATTENTIONS.items()
        for part in ("query", "key", "value")
        for row in torch_dense(f"block_{{i}}/{ours}/{part}", f"{BLOCK}.{theirs}.self.{part}")
    ),
    *(
        row
        for ours, theirs in ATTENTIONS.items()
        for row in torch_dense(f"block_{{i}}/{ours}/proj", f"{BLOCK}.{theirs}.output.dense")
    ),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.attention.output.LayerNorm"),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.crossattention.output.LayerNorm"),
    *torch_norm("block_{i}/norm3", f"{BLOCK}.output.LayerNorm"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.intermediate.dense"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.output.dense"),
    *torch_dense("transform", "cls.predictions.transform.dense"),
    *torch_norm("norm_transform", "cls.predictions.transform.LayerNorm"),
    Row("head/kernel", "cls.predictions.decoder.weight", LINEAR),
    Row("head/bias", "cls.predictions.bias", SAME),
)
DEFAULTS = {
    "num_attention_heads": 8,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "tie_word_embeddings": True,
    "bos_token_id": 30522,
    "sep_token_id": 102,
    "pad_token_id": 0,
}
MARKS = {"start": "bos_token_id", "end": "sep_token_id", "pad": "pad_token_id"}
WORDS = "text_decoder.bert.embeddings.word_embeddings.weight"


def architecture(shapes, checkpoint):
    """Returns the arguments, the evaluation and the origins of the image tower."""
    width, channels, *patch_size = need(shapes, "embeddings.patch_embedding.weight", 4)
    tower = part_of(checkpoint.config, "vision")
    config_arguments, origins = transformers_config.read_model(tower, width, KINDS)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "BLIP")
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layers\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{LAYER.format(i=0)}.mlp.fc2.weight", 2)[1],
        "tokens": {"class_token": True, "class_position": True},
        "num_classes": classes_of(shapes, PROJECTION),
    }
    prepared = prepared | ({"projection": TWICE} if "visual_projection.weight" in shapes else {})
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared


def text_names(shapes):
    """Returns the names of the text decoder: the bias of its logits is that of the last matrix, where both have one."""
    names = renamed(shapes, ((r"^text_decoder\.(bert\.)?", ""),))
    own = names.pop("cls.predictions.decoder.bias", None)
    return names if own is None else names | {"cls.predictions.bias": own}


def text_architecture(shapes, checkpoint):
    """Returns the arguments, the tokens and the origins of the text decoder."""
    vocabulary, width = need(shapes, "embeddings.word_embeddings.weight", 2)
    config = checkpoint.config
    if config.get("model_type") != "blip":
        raise ValueError(
            "A file of BLIP needs its config.json in the same folder: no tensor shows its heads and its ids. "
            f"Received: model_type {config.get('model_type')!r}"
        )
    options = DEFAULTS | part_of(config, "text")
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, "embeddings.position_embeddings.weight", 2)[0],
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\.")),
        "num_heads": options["num_attention_heads"],
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}.intermediate.dense.weight", 2)[0],
        "context_width": need(shapes, f"{BLOCK.format(i=0)}.crossattention.self.key.weight", 2)[1],
        "norm_order": "post",
        "gelu": activation(options["hidden_act"]),
        "epsilon": options["layer_norm_eps"],
        "masked_id": options["pad_token_id"],
        "norm_words": True,
        "transform": True,
        "tied": config.get("tie_word_embeddings", True) or options["tie_word_embeddings"],  # either ties
        "logit_bias": True,
    }
    origins = dict.fromkeys(("num_heads", "gelu", "epsilon"), transformers_config.CONFIG)
    return arguments, {"tokens": "bert", **{mark: options[name] for mark, name in MARKS.items()}}, origins


FORMAT = Format(
    name="huggingface-blip",
    rows=IMAGE,
    detect=lambda names: huggingface_clip.detect(names) and any(".self_attn.qkv." in name for name in names),
    aliases=((r"^vision_model\.", ""),),
    architecture=architecture,
    ignored=r"(text_(model|encoder|decoder|projection|proj)|visual_projection|itm_head)\..*|logit_scale"
    r"|(.*\.)?position_ids",
    head_names=rf"{PROJECTION}\..*",
)
TEXT_FORMAT = TOWERS_FORMAT._replace(
    name="huggingface-blip",
    rows=TEXT,
    detect=lambda names: WORDS in names,
    canonical=text_names,
    architecture=text_architecture,
    ignored=r"vision_model\..*|embeddings\.position_ids",
    head_names=r"cls\.predictions\.decoder\.weight",  # the table of words, where it is tied
)
