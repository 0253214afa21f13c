"""Names in Hugging Face transformers' files: the text towers of CLIP, MetaCLIP 2, SigLIP and SigLIP 2."""

import re

from keras_vit.checkpoints.formats import huggingface_clip, transformers_config
from keras_vit.checkpoints.tables import (
    LINEAR,
    SAME,
    Assumed,
    Format,
    Missing,
    Row,
    blocks,
    need,
    torch_dense,
    torch_norm,
)

WORDS, POSITIONS = "embeddings.token_embedding.weight", "embeddings.position_embedding.weight"
BLOCKS = tuple(row for row in huggingface_clip.ROWS if str(row.ours).startswith("block_{i}/"))
ROWS = (
    Row("words/word_embedding", WORDS, SAME),
    Row("words/position_embedding", POSITIONS, SAME),
    *BLOCKS,
    *torch_norm("norm", "final_layer_norm"),
    *torch_dense("projection", "head"),  # SigLIP
    Row("projection/kernel", "text_projection.weight", LINEAR),  # CLIP
)
ALIASES = ((r"^text_model\.", ""),)
HEADS = {384: 6, 512: 8, 640: 10, 768: 12, 1024: 16, 1152: 16, 1280: 20}  # of published text towers, by width
VOCABULARY = 49408  # of CLIP
CLIP = {**huggingface_clip.CLIP, "num_attention_heads": 8, "eos_token_id": VOCABULARY - 1}
SIGLIP = huggingface_clip.SIGLIP
OWN_END = ("metaclip_2", "metaclip_2_text_model")  # whose 2 is an id; elsewhere it was a mistake that was kept
DEFAULTS = dict.fromkeys(("clip", "clip_text_model", *OWN_END), CLIP)
DETECTORS = tuple(f"{kind}{part}" for kind in ("owlvit", "owlv2") for part in ("", "_text_model"))
DEFAULTS |= dict.fromkeys((*DETECTORS, "clipseg", "clipseg_text_model"), CLIP)
DEFAULTS |= dict.fromkeys((f"siglip{n}{kind}" for n in ("", "2") for kind in ("", "_text_model")), SIGLIP)
OURS = {"num_heads": "num_heads", "block.gelu": "gelu", "norm.epsilon": "epsilon"}


def published_heads(width):
    """Returns the number of heads of published text towers of a width, and its origin; `None` and `Missing` if unknown.

    They are not those of image towers.
    """
    if width in HEADS:
        return HEADS[width], f"published text towers of width {width}"
    return None, Missing(f"No tensor shows the heads, and no text tower of width {width} is published: pass num_heads.")


def architecture(shapes, checkpoint):
    vocabulary, width = need(shapes, WORDS, 2)
    kind = "SigLIP" if "head.weight" in shapes else "CLIP"
    config = transformers_config.part_of(checkpoint.config, "text")
    config_arguments, origins = transformers_config.read_model(
        config, width, DEFAULTS | {None: huggingface_clip.BARE[kind]}
    )
    arguments = {
        "num_heads": config_arguments["num_heads"],
        "gelu": config_arguments["block"]["gelu"],
        "epsilon": config_arguments["norm"]["epsilon"],
    }
    origins = {OURS[name]: origin for name, origin in origins.items()}
    bare = not config.get("model_type")
    if bare:
        arguments["num_heads"], origins["num_heads"] = published_heads(width)
    if bare and kind == "CLIP":
        origins["gelu"] = Assumed("files of CLIP have 'exact' or 'quick'")
    head = next((name for name in ("head.weight", "text_projection.weight") if name in shapes), None)
    pooling, origin = ({"pooling": "last"}, "SigLIP's rule") if kind == "SigLIP" else _pooling(config, vocabulary)
    arguments |= {
        "vocabulary": vocabulary,
        "length": need(shapes, POSITIONS, 2)[0],
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layers\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{huggingface_clip.BLOCK.format(i=0)}.mlp.fc2.weight", 2)[1],
        "causal": kind == "CLIP",
        "projection": need(shapes, head, 2)[0] if head else None,
        "projection_bias": "head.bias" in shapes,
        **pooling,
    }
    return arguments, {"tokens": kind.lower()}, origins | {"pooling": origin}


def _pooling(config, vocabulary):
    """Returns which token stands for a text of CLIP, and who says so."""
    if not config.get("model_type"):
        published = vocabulary == VOCABULARY
        return {"pooling": "largest"}, "CLIP's rule" if published else Missing(
            f"No tensor shows where a text ends, and CLIP has {VOCABULARY} ids, not {vocabulary}: pass pooling."
        )
    kind, end = config.get("model_type"), config.get("eos_token_id", CLIP["eos_token_id"])
    if kind in DETECTORS or (end == 2 and kind not in OWN_END):
        return {"pooling": "largest"}, transformers_config.CONFIG
    return {"pooling": "end", "end": end}, transformers_config.CONFIG


FORMAT = Format(
    name="huggingface-text",
    rows=ROWS,
    detect=lambda names: any(name.endswith(WORDS) for name in names),
    aliases=ALIASES,
    architecture=architecture,
    ignored=r"vision_model\..*|visual_projection\..*|logit_(scale|bias)|(.*\.)?position_ids",
)
