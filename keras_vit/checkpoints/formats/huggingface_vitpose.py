"""Names in Hugging Face transformers' files of ViTPose: a ViT whose patches are shifted, and heat maps."""

from keras_vit.checkpoints.formats import huggingface
from keras_vit.checkpoints.formats.huggingface_depth import batch_norm, conv
from keras_vit.checkpoints.tables import CONV, Form, Format, Missing, Row, need
from keras_vit.layers import ShiftImage

PADDING = 2  # pixels, of the convolution that projects patches
CUTTING = {"do_affine_transform": True, "normalize_factor": 200.0}  # how transformers cuts boxes out, with defaults
POSITION = "encoder/position_embedding"
# The first row, of a class token that the model does not have, is added to all others.
ADDED = Form(lambda arrays, _: [arrays[0][:, 1:] + arrays[0][:, :1]], None)
ROWS = (
    *(row for row in huggingface.ROWS if row.ours != POSITION and not str(row.ours).startswith(("head", "('head"))),
    Row(POSITION, "embeddings.position_embeddings", ADDED),
    *conv("head/conv", "head.conv"),
    *(
        row
        for i in (0, 1)
        for row in (
            Row(f"head/deconv{i}/kernel", f"head.deconv{i + 1}.weight", CONV),
            *batch_norm(f"head/norm{i}", f"head.batchnorm{i + 1}"),
        )
    ),
)


def detect(names):
    return "head.conv.weight" in names and not any(name.endswith("embeddings.cls_token") for name in names)


def architecture(shapes, checkpoint):
    config = checkpoint.config
    backbone = config.get("backbone_config") or {}
    if any(".experts." in name for name in shapes) or backbone.get("num_experts", 1) > 1:
        raise ValueError(
            "ViTPose+ has experts for several data sets (num_experts), and cannot be loaded. "
            f"Received: {str(checkpoint.path)!r}"
        )
    kind = backbone.get("model_type", "vitpose_backbone")
    if (config and config.get("model_type") != "vitpose") or kind != "vitpose_backbone":
        raise ValueError(f"`model_type` must be vitpose. Received: {config.get('model_type')!r}, backbone {kind!r}")
    stated = {"image_size": [256, 192], **backbone, "model_type": "vit"} if config else {}
    inner = checkpoint._replace(config=stated, processor=_of_whole_crops(checkpoint.processor))
    arguments, evaluation, origins = huggingface.architecture(shapes, inner, "ViTPose")
    depth, taps = arguments["depth"], backbone.get("out_indices") or [arguments["depth"]]
    if taps not in ([depth], [-1]):
        raise ValueError(f"ViTPose's head must take the last block, [{depth}]. Received: out_indices={taps}")
    arguments |= {"stem": ShiftImage(PADDING), "tokens": {"class_token": False, "class_position": False}}
    if not config:
        missing = "No tensor of ViTPose shows the size of its images: put the source's config.json next to the file."
        return arguments, evaluation, origins | {"maps": Missing(missing)}
    classic = "head.deconv1.weight" in shapes
    if config.get("use_simple_decoder", True) == classic:
        raise ValueError(f"`use_simple_decoder` must be that of the tensors, {not classic}. Received: {classic}")
    head = {
        "kind": "heatmaps",
        "blocks": (depth - 1,),
        "normed": True,
        "keypoints": need(shapes, "head.conv.weight", 4)[0],
        "classic": classic,
        "scale": 4 if classic else config.get("scale_factor", 4),
        "filters": need(shapes, "head.deconv1.weight", 4)[1] if classic else 256,
    }
    return arguments | {"pooling": "gap", "maps": head}, evaluation, origins


def _of_whole_crops(processor):
    """Returns what a processor does with the crop of a box; raises ValueError if it does not cut as published."""
    wrong = {name: processor[name] for name, value in CUTTING.items() if processor.get(name, value) != value}
    if wrong:
        raise ValueError(f"ViTPose's processor must have {CUTTING}. Received: {wrong}")
    return {name: value for name, value in processor.items() if name not in CUTTING}


FORMAT = Format(
    name="huggingface-vitpose",
    rows=ROWS,
    detect=detect,
    aliases=huggingface.ALIASES,
    architecture=architecture,
    placeholders=huggingface.FORMAT.placeholders,
    ignored=r".*\.num_batches_tracked",
    head_names=r"head\..*",
)
