"""Names in Hugging Face transformers' files of EoMT: DINOv2 with queries before its last blocks, and masks."""

from keras_vit.checkpoints.formats import huggingface_dinov2
from keras_vit.checkpoints.formats.huggingface_depth import conv
from keras_vit.checkpoints.formats.transformers_config import GELUS
from keras_vit.checkpoints.tables import DEPTHWISE, Form, Format, Missing, Otherwise, Row, need, torch_dense, torch_norm
from keras_vit.layers.heads.query_masks import DENSE
from keras_vit.models.options import merged

KIND = "eomt"
QUERIES, MASKED, UPSCALE = "query.weight", "attn_mask_probs", "upscale_block.block"
CLASSES = "class_predictor"
POSITION, TABLE = "encoder/position_embedding", "embeddings.position_embeddings"
STATED = {"num_attention_heads": 16, "image_size": 640, "num_blocks": 4, "hidden_act": "gelu"}  # of `EomtConfig`
ONE_MORE = Form(lambda arrays, _: [arrays[0][None]], lambda arrays, _: [arrays[0][0]])  # axis, of the batch
ROWS = (
    *(row for row in huggingface_dinov2.ROWS if row.ours != POSITION and "head/" not in str(row.ours)),
    Row(POSITION, TABLE, ONE_MORE),
    Row("queries/tokens", QUERIES, ONE_MORE),
    *torch_dense("head/class", CLASSES),
    *(row for i in range(DENSE) for row in torch_dense(f"head/fc{i}", f"mask_head.fc{i + 1}")),
    *conv("head/up{i}", f"{UPSCALE}.{{i}}.conv1"),
    Row("head/depthwise{i}/kernel", f"{UPSCALE}.{{i}}.conv2.weight", DEPTHWISE),
    *torch_norm("head/norm{i}", f"{UPSCALE}.{{i}}.layernorm2d"),
)
ALIASES = (
    (rf"^{TABLE.replace('.', '[.]')}[.]weight$", TABLE),
    (r"\.attention\.out_proj\.", ".attention.output.dense."),
    *huggingface_dinov2.ALIASES,
)
NO_CONFIG = (
    "No tensor of this EoMT shows before which block its queries come: put the source's config.json next to the file, "
    "or pass num_classes=0 for the encoder alone."
)
OWN = {  # options of its processor that the images' one has not: read here, or of the truth
    "do_split_image", "do_pad", "size", "image_processor_type", "ignore_index", "num_labels",
}  # fmt: skip
PHOTOS = "photos"  # in the rule of evaluation: how `segment` prepares them


def detect(names):
    return any(name.startswith(f"{UPSCALE}.") for name in names)


def architecture(shapes, checkpoint):
    config = checkpoint.config
    if config.get("model_type", KIND) != KIND or TABLE not in shapes:
        raise ValueError(
            f"`model_type` must be {KIND}, on DINOv2 with a table of positions; that on DINOv3 cannot be loaded. "
            f"Received: {config.get('model_type')!r}"
        )
    stated = {**STATED, **config, "model_type": "dinov2"} if config else {}
    if config:
        stated["image_size"] = _side(stated["image_size"])
    processor, photos = _of_whole_photos(checkpoint.processor, stated.get("image_size"))
    inner = checkpoint._replace(config=stated, processor=processor)
    arguments, evaluation, origins = huggingface_dinov2.architecture(shapes, inner)
    if not checkpoint.processor:  # DINOv2's crops
        evaluation = evaluation | {"resize": "direct", "crop_pct": None, "interpolation": "bilinear"}
    arguments = merged(arguments, {"tokens": {"class_position": False}})
    remark = "transformers keeps the aspect ratio of a photo; `segment` keeps it too, `preprocess` resizes it."
    evaluation = {**evaluation, **({PHOTOS: photos} if photos else {})}
    origins = {**origins, "evaluation": Otherwise(remark)}
    last = _last(shapes, checkpoint, stated)
    if last is None:
        return arguments, evaluation, origins | {"maps": Missing(NO_CONFIG)}
    if not 0 < last < arguments["depth"]:
        raise ValueError(f"`num_blocks` must be at least 1 and below {arguments['depth']}. Received: {last}")
    head = {
        "kind": "segments",
        "blocks": (arguments["depth"] - 1,),
        "normed": True,
        "last": last,
        "units": need(shapes, f"{CLASSES}.weight", 2)[0] - 1,
        "queries": need(shapes, QUERIES, 2)[0],
        "upscales": sum(name.startswith(f"{UPSCALE}.") and name.endswith(".conv1.weight") for name in shapes),
        "gelu": GELUS[stated.get("hidden_act", "gelu")],
        "epsilon": 1e-6,
    }
    return arguments | {"maps": head}, evaluation, origins


def _side(size):
    """Returns the side of square images; raises ValueError for others."""
    sides = set(size) if isinstance(size, list) and len(size) == 2 else {size} if isinstance(size, int) else ()
    if len(sides) != 1 or not isinstance(side := sides.pop(), int) or isinstance(side, bool) or side < 1:
        raise ValueError(f"`image_size` of EoMT must be one positive integer. Received: {size!r}")
    return side


def _last(shapes, checkpoint, stated):
    """Returns the number of blocks that see the queries; `None` if nothing states it.

    Raises:
        ValueError: If queries see only some of the patches there, as before the end of training.
    """
    last = stated.get("num_blocks")
    if MASKED not in shapes:
        return last
    shares = checkpoint.array(MASKED)
    if last not in (None, len(shares)):
        raise ValueError(f"`num_blocks` must be the length of {MASKED}, {len(shares)}. Received: {last!r}")
    if shares.any():
        raise ValueError(
            f"Queries must see all patches, as at the end of training: {MASKED} must be 0. Received: {shares.tolist()}"
        )
    return len(shares)


def _of_whole_photos(processor, size):
    """Returns a processor that resizes to one size instead, and how the source's keeps the aspect ratio.

    `"windows"` cuts windows along the longer side, for a class of each pixel; `"padded"` fits all of a photo.
    """
    inside = processor.get("image_processor", processor)
    if not inside:
        return {}, None
    sizes, split, pad = inside.get("size") or {}, inside.get("do_split_image"), inside.get("do_pad")
    edges = (sizes.get("shortest_edge"), sizes.get("longest_edge")) if isinstance(sizes, dict) else ()
    if bool(split) == bool(pad) or edges != (size or edges[:1][0], None if split else size or edges[0]):
        raise ValueError(
            "EoMT's processor must split photos into windows, with the shortest edge of the images, or fit and pad "
            f"them, with both edges, of {size} pixels. Received: do_split_image={split!r}, do_pad={pad!r}, "
            f"size={sizes!r}"
        )
    side, others = edges[0], {name: value for name, value in inside.items() if name not in OWN}
    plain = {**others, "image_processor_type": "ViTImageProcessor", "size": {"height": side, "width": side}}
    return plain, "windows" if split else "padded"


FORMAT = Format(
    name="huggingface-eomt",
    rows=ROWS,
    detect=detect,
    aliases=ALIASES,
    architecture=architecture,
    placeholders=huggingface_dinov2.FORMAT.placeholders,
    ignored=rf"{MASKED}|criterion\.empty_weight",
    head_names=rf"({QUERIES.replace('.', '[.]')}|({CLASSES}|mask_head|upscale_block)\..*)",
    resample="bicubic-antialias",
)
