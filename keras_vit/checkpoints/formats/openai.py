"""Names in the files of CLIP's own code and OpenCLIP's: the image tower, whose projection becomes the head."""

from keras_vit.checkpoints.formats import timm
from keras_vit.checkpoints.formats.huggingface_clip import TABLE, TOKEN
from keras_vit.checkpoints.tables import NEVER, Form, Row, need

BLOCK = r"^transformer\.resblocks\.(\d+)\."
ALIASES = (  # to timm's names
    (r"^conv1\.", "patch_embed.proj."),
    (r"^ln_pre\.", "norm_pre."),
    (rf"{BLOCK}ln_([12])\.", r"blocks.\1.norm\2."),
    (rf"{BLOCK}attn\.in_proj_", r"blocks.\1.attn.qkv."),
    (rf"{BLOCK}attn\.out_proj\.", r"blocks.\1.attn.proj."),
    (rf"{BLOCK}mlp\.c_fc\.", r"blocks.\1.mlp.fc1."),
    (rf"{BLOCK}mlp\.c_proj\.", r"blocks.\1.mlp.fc2."),
    (r"^ln_post\.", "norm."),
    (r"^proj$", "head.proj"),
)
_WITHOUT_BIAS = Form(lambda arrays, heads: [arrays[0], 0 * arrays[0][0]], lambda ours, heads: [ours[0]])
OWN = (
    Row("encoder/class_token", "class_embedding", TOKEN),
    Row("encoder/position_embedding", "positional_embedding", TABLE),
    Row(("head/kernel", "head/bias"), "head.proj", _WITHOUT_BIAS),
)


def detect(names):
    return {"class_embedding", "conv1.weight", "ln_pre.weight"} <= set(names)


def architecture(shapes, checkpoint):
    if not {"norm.weight", "head.proj"} <= set(shapes):
        raise ValueError(
            "A file with CLIP's own names must have ln_post and proj: without them it is a Perception Encoder, whose "
            f"rotary positions are not in the file. Received: {str(checkpoint.path)!r}"
        )
    width, classes = need(shapes, "head.proj", 2)
    plain = {"cls_token": (1, 1, width), "pos_embed": (1, *need(shapes, "positional_embedding", 2))}
    plain |= {"head.weight": (classes, width)}
    return timm.FORMAT.architecture(shapes | plain, checkpoint)


FORMAT = timm.FORMAT._replace(
    name="openai",
    rows=(*OWN, *(row for row in timm.ROWS if row.ours not in {row.ours for row in OWN})),
    detect=detect,
    aliases=ALIASES,
    canonical=None,
    express=None,
    ignored=NEVER,
    architecture=architecture,
    head_names=r"head\..*",
    resample="bicubic-antialias",
)
