"""Finds the Vision Transformer, or the text tower, in a file with more: prefixes, averaged copies."""

import re

from keras_vit.checkpoints.tables import CLIP, listing

OPEN_CLIP = "open_clip_config.json"
GENERATION = "generation_config.json"
PAIR = "vision-encoder-decoder"  # transformers' `model_type` of an image tower and a text decoder
CROPS = {"shortest": "center", "squash": "squash"}  # OpenCLIP's names and timm's
# The weight that shows where a model begins, after the names of models that its format knows.
FIRST = re.compile(
    r"(?P<prefix>(?:.+?\.)??)(?:(?:vit|deit|ijepa|beit|data2vec_vision|dinov2|dinov2_with_registers|vision_model|vivit|videomae)\.)?"
    r"(?:(?:patch_embed|preprocessor\.patchifier|embeds)\.proj\.weight|conv_proj\.weight|ln_pre\.weight|"
    r"embeddings\.(?:patch_embeddings?\.(?:projection\.)?|patch_embed\.)weight)"
)
# The same of text towers: transformers', OpenAI's and OpenCLIP's, big_vision's.
FIRST_OF_TEXT = re.compile(
    r"(?P<prefix>(?:.+?\.)??)(?:(?:(?:text_model\.)?embeddings\.|text\.)?token_embedding\.weight|"
    r"(?:params/txt/)?Embed_0/embedding)"
)
# The same of one encoder over words and patches: transformers' and its authors'. All their tensors are of one model.
FIRST_OF_VILT = re.compile(
    r"(?P<prefix>(?:.+?\.)??)(?:(?:vilt\.)?embeddings\.)?text_embeddings\.word_embeddings\.weight"
)
# The same of DiTs: their authors' and diffusers'.
FIRST_OF_DIT = re.compile(r"(?P<prefix>(?:.+?\.)??)(?:x_embedder\.proj\.weight|pos_embed\.proj\.weight)")
# The same of RF-DETR.
FIRST_OF_RF_DETR = re.compile(r"(?P<prefix>(?:.+?\.)??)transformer\.decoder\.ref_point_head\.layers\.0\.weight")
WHOLE = (FIRST_OF_VILT, FIRST_OF_DIT, FIRST_OF_RF_DETR)  # all tensors of these files are read
# The same of heads on patches that find what texts name: OWL-ViT's, OWLv2's.
FIRST_OF_HEADS = re.compile(r"(?P<prefix>(?:.+?\.)??)class_head\.dense0\.weight")
# The same of a decoder that draws masks of what texts say: CLIPSeg's.
FIRST_OF_MASKS = re.compile(r"(?P<prefix>(?:.+?\.)??)decoder\.film_mul\.weight")
JOINING = {"heads": FIRST_OF_HEADS, "masks": FIRST_OF_MASKS}  # parts that join an image and a text tower
# The same of an autoencoder of latents: diffusers'.
AUTOENCODER = {
    f"latent_{part}": re.compile(rf"(?P<prefix>(?:.+?\.)??){part}\.conv_in\.weight") for part in ("encoder", "decoder")
}
# Words in the names of averaged weights, and in those of weights that their authors do not evaluate.
AVERAGED = {"ema", "swa", "avg", "average", "averaged", "teacher", "target"}
OTHERS = {"momentum", "k", "current"}  # MoCo's slow encoder, and what Lightning's averaging keeps to resume
# MoCo's two encoders, whose `head` is a projection for its loss.
MOCO_PREFIX, MOCO_HEAD = re.compile(r"(.*\.)?(base_encoder|momentum_encoder|encoder_q|encoder_k)\."), "moco_head."
# What files have outside their ViT: text towers, Depth Anything's decoder, heads of self-supervision, counters.
PASSED_OVER = re.compile(
    r"n_averaged|(text|neck|transformer|token_embedding|ln_final|(dino|ibot)_(head|loss)).*|(.*\.)?logit_(scale|bias)"
    r"|decoder\.(transformer|model\.decoder|lm_head|output_projection)\..*|enc_to_dec_proj\..*"
    r"|positional_embedding|visual_projection\..*|input_resolution|context_length|vocab_size"
    r"|(box|class|objectness)_head\.(dense\d|logit_(scale|shift))\..*|layer_norm\.(weight|bias)|box_bias"
)
# The table of words of a decoder that writes about images: GPT-2's, TrOCR's, BLIP's.
WRITTEN = re.compile(
    r"decoder\.transformer\.wte\.weight|decoder\.model\.decoder\.embed_tokens\.weight"
    r"|text_decoder\.bert\.embeddings\.word_embeddings\.weight"
)
# What attends to the image in their first block.
ABOUT_IMAGES = re.compile(
    r"decoder\.transformer\.h\.0\.crossattention\.|decoder\.model\.decoder\.layers\.0\.encoder_attn\."
    r"|text_decoder\.bert\.encoder\.layer\.0\.crossattention\."
)
# The neck of models of depth: DPT's, Depth Anything's.
NECK = re.compile(r"neck\.(reassemble_stage|convs|fusion_stage)\..*")
# Files of VideoMAE's authors: the layer between encoder and decoder, and all that is not in `encoder.`.
BETWEEN, BESIDE = "encoder_to_decoder.weight", re.compile(r"(decoder|encoder_to_decoder)\..*|mask_token")
ADAPTER = re.compile(r"(.*\.)?(lora_\w+|base_layer|modules_to_save|ia3_\w+)\..*")


def preferred(places):
    """Returns the place of the weights to load: the averaged ones, as timm and the authors of DINO load them.

    Args:
        places: Names of sets of weights in a file: keys of a dictionary, or prefixes.

    Raises:
        ValueError: If the names do not say which.
    """
    words = {place: set(re.split("[^a-z]+", place.lower())) for place in places}
    ranks = {place: bool(found & AVERAGED) - bool(found & OTHERS) for place, found in words.items()}
    best = [place for place in places if ranks[place] == max(ranks.values())]
    if len(best) > 1:
        raise ValueError(f"it has the weights of several models: {_names(best)}. Save those to load in a file alone")
    return best[0]


def choice(places, place):
    """Returns a sentence that says which of several sets of weights is loaded."""
    return f"It has the weights of several models: {_names(places)}. Those of {_names([place])} are loaded."


def _names(places):
    return listing(place.rstrip(".") or "(no prefix)" for place in places)


def unwrap(names):
    """Finds the tensors of a Vision Transformer in a file, and removes the prefix of their names.

    Args:
        names: Names of all tensors.

    Returns:
        A dictionary from the names without the prefix to the file's, the prefix, the number of other tensors, and
        sentences to warn with.

    Raises:
        ValueError: If there are several models, or the file is an adapter of PEFT.
    """
    if any(ADAPTER.fullmatch(name) for name in names):
        raise ValueError(
            "it has an adapter of PEFT. Merge it into its base model first: model.merge_and_unload(), then "
            "save_pretrained, and load that folder"
        )
    for first in WHOLE:
        if any(map(first.fullmatch, names)):
            whole, remarks = unwrap_text(names, first)
            return whole, "", 0, remarks
    prefixes = sorted({match["prefix"] for match in map(FIRST.fullmatch, names) if match})
    prefix = preferred(prefixes) if prefixes else ""
    inside = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    if MOCO_PREFIX.fullmatch(prefix):
        inside = {re.sub("^head\\.", MOCO_HEAD, name): place for name, place in inside.items()}
    outside = {_short(name, prefix): name for name in names if not name.startswith(prefix)}
    beside = BESIDE if BETWEEN in outside else NECK
    kept = (short for short in outside if short.startswith("head.") or beside.fullmatch(short))
    heads = {short: outside[short] for short in kept if short not in inside}
    passed_over = f"{PASSED_OVER.pattern}|decoder\\..*" if joining(names) == "masks" else PASSED_OVER
    others = [name for short, name in outside.items() if short not in heads and not re.fullmatch(passed_over, short)]
    remarks = [choice(prefixes, prefix)] if len(prefixes) > 1 else []
    if others and not remarks:
        remarks = [f"Only its Vision Transformer is loaded. Left out: {listing(others)}."]
    return inside | heads, prefix, len(outside) - len(heads), remarks


def unwrap_text(names, first=FIRST_OF_TEXT):
    """Removes the prefix of the names of a file with a text tower; its other tensors stay.

    Args:
        names: Names of all tensors.
        first: Regular expression of the weight that shows where the model begins.

    Returns:
        A dictionary from the names without the prefix to the file's, and sentences to warn with.

    Raises:
        ValueError: If there are several text towers.
    """
    prefixes = sorted({match["prefix"] for match in map(first.fullmatch, names) if match})
    prefix = preferred(prefixes) if prefixes else ""
    inside = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    return inside, [choice(prefixes, prefix)] if len(prefixes) > 1 else []


def writes(names):
    """Returns whether a file has a decoder of a known kind that writes texts about images, by its tensors' names.

    BLIP's model that answers questions has a text encoder too.
    """
    asked = any(name.startswith("text_encoder.") for name in names)
    return any(map(WRITTEN.fullmatch, names)) and any(map(ABOUT_IMAGES.match, names)) and not asked


def joining(names):
    """Returns the part of `JOINING` that a file has, by its tensors' names; `None` without one."""
    return next((part for part, first in JOINING.items() if any(map(first.fullmatch, names))), None)


def other_decoder(config):
    """Returns a sentence in a list if settings say that a file without a known decoder has one."""
    if config.get("model_type") != PAIR:
        return []
    kind = (config.get("decoder") or {}).get("model_type")
    return [f"Its decoder, {kind!r}, is none that can be loaded: the image tower alone is."]


def _short(name, prefix):
    """Returns a name without the leading parts that it shares with a prefix."""
    for part in prefix.split("."):
        if not part or not name.startswith(f"{part}."):
            break
        name = name.removeprefix(f"{part}.")
    return name


def of_open_clip(config):
    """Returns the content of timm's `config.json` that OpenCLIP's configuration amounts to.

    Args:
        config: Content of `open_clip_config.json`, `{}` without one.
    """
    model = config.get("model_cfg", {})
    tower = model.get("vision_cfg", {})
    if not tower:
        return {}
    prepared, side = CLIP | config.get("preprocess_cfg", {}), tower.get("image_size", 224)
    mode = prepared.get("resize_mode", "shortest")
    if mode not in CROPS:
        raise ValueError(f"`resize_mode` must be one of {', '.join(CROPS)}. Received: {mode!r}")
    prepared = {
        "pretrained_cfg": {
            "input_size": [3, *(side if isinstance(side, list) else [side, side])],
            "crop_pct": 1.0,
            "crop_mode": CROPS[mode],
            "interpolation": prepared.get("interpolation", "bicubic"),
            "mean": prepared["mean"],
            "std": prepared["std"],
        },
    }
    if "timm_model_name" not in tower:  # the names of CLIP's own code
        activation = "quick_gelu" if model.get("quick_gelu") else "gelu"
        heads = {"num_heads": tower["width"] // tower.get("head_width", 64)} if "width" in tower else {}
        return prepared | {"model_args": {"act_layer": activation, **heads}}
    pool = {"global_pool": tower["timm_pool"]} if tower.get("timm_pool") else {}
    return {"architecture": tower["timm_model_name"], **pool, **prepared}
