"""Names in files of ViViT and VideoMAE: Hugging Face transformers', and those of VideoMAE's authors."""

import re

from keras_vit.checkpoints.formats import huggingface, timm, transformers_config
from keras_vit.checkpoints.formats.transformers_config import CONFIG
from keras_vit.checkpoints.tables import (
    SAME,
    Assumed,
    Format,
    Row,
    blocks,
    classes_of,
    each,
    joined,
    need,
    published_heads,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

# PyTorch's (out, channels, time, height, width): ours has time, row, column and channel of a flat tubelet.
TUBELET = each(lambda a, heads: a.transpose(2, 3, 4, 1, 0), lambda a, heads: a.transpose(4, 3, 0, 1, 2))
PATCHES = ("embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight")  # transformers', the authors'
PROJECTION = Row("encoder/projection/kernel", PATCHES[0], TUBELET)
ALIASES = ((r"^(vivit|videomae)\.", ""), *huggingface.IN_MEMORY)
IN_BLOCKS = tuple(row for row in huggingface.ROWS if str(row.ours).startswith("block_"))
OTHERS = tuple(row for row in huggingface.EMBEDDINGS if row.ours != PROJECTION.ours)
QV_BIAS = Row(
    "block_{i}/attention/qv_bias",
    tuple(f"{huggingface.BLOCK}.attention.attention.{part}_bias" for part in "qv"),
    joined(SAME, 2),
)
NORMS = {"after": "fc_norm", "before": "layernorm", None: "layernorm"}  # by `final_norm`
FC_EPSILON = 1e-5  # of VideoMAE's last norm: PyTorch's default, whatever the configuration says
BARE = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224, "num_frames": 16, "tubelet_size": 2}
DEFAULTS = {
    "vivit": {**BARE, "hidden_act": "gelu_fast", "layer_norm_eps": 1e-6, "num_frames": 32, "num_attention_heads": 12},
    "videomae": {**BARE, "num_attention_heads": 12, "use_mean_pooling": True},
}
KINETICS, SEGMENTS = {"vivit": 2, "videomae": 4}, 174  # stride of the frames; classes of Something-Something v2
ROWS = (PROJECTION, *OTHERS, *IN_BLOCKS, QV_BIAS, *torch_norm("norm", "{norm}"), *torch_dense("head", "classifier"))


def detect_by(patches):
    """Returns a function that says whether a file has a convolution of tubelets under a name."""

    def detect(shapes):
        return any(name.endswith(patches) and len(shapes[name]) == 5 for name in shapes)

    return detect


def architecture(shapes, checkpoint):
    config = checkpoint.config
    kind = config.get("model_type")
    if kind not in DEFAULTS:
        raise ValueError(
            "A file of ViViT or VideoMAE needs its config.json: the tensors show neither heads nor frames. "
            f"Received: model_type {kind!r}"
        )
    width, channels, length, *patch_size = need(shapes, PATCHES[0], 5)
    config_arguments, origins = transformers_config.read_model(config, width, DEFAULTS)
    about = DEFAULTS[kind] | config
    arguments = {
        "frames": about["num_frames"],
        "tubelet": length,
        "image_size": config_arguments.get("image_size", about["image_size"]),
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{huggingface.BLOCK.format(i=0)}.intermediate.dense.weight", 2)[0],
        "num_classes": classes_of(shapes, "classifier"),
        **_ends(shapes, kind, about),
    }
    _check(about, arguments, kind)
    statistics, evaluation, prepared = PROCESSORS[kind](checkpoint.processor)
    sampled, why = sampling(kind, arguments["num_classes"])
    origins |= {"frames": CONFIG if "num_frames" in config else transformers_config.DEFAULT, "sampling": why}
    return merged(arguments, config_arguments, statistics), {**evaluation, "frames": sampled}, origins | prepared


def _ends(shapes, kind, about):
    """Returns the arguments that say what is before and behind the blocks."""
    biased = f"{huggingface.QKV[0].format(i=0)}.bias" in shapes
    if kind == "vivit":
        return {
            "tokens": {"class_token": True, "class_position": True},
            "position": "learned",
            "pooling": "token",
            "final_norm": "before",
            "block": {"qkv_bias": biased},
        }
    halved = QV_BIAS.theirs[0].format(i=0) in shapes
    of_mean = "fc_norm.weight" in shapes
    classes = bool(classes_of(shapes, "classifier"))
    if classes and of_mean != bool(about["use_mean_pooling"]):
        raise ValueError(
            f"config.json says use_mean_pooling {about['use_mean_pooling']!r}, and the file has "
            f"{'fc_norm' if of_mean else 'no fc_norm'}."
        )
    normed = "layernorm.weight" in shapes
    if not classes and normed == bool(about["use_mean_pooling"]):  # with it, transformers has no norm, or a new one
        raise ValueError(
            f"config.json says use_mean_pooling {about['use_mean_pooling']!r}, and the file has "
            f"{'a' if normed else 'no'} layernorm after the blocks."
        )
    return {
        "tokens": {"class_token": False, "class_position": True},
        "position": "sincos1d",
        "pooling": "first" if classes and not of_mean else "gap",
        "final_norm": "after" if of_mean else "before" if normed else None,
        "pool_epsilon": FC_EPSILON if of_mean else None,
        "block": {"qkv_bias": biased or halved, "key_bias": biased},
    }


def _check(about, arguments, kind):
    """Raises ValueError unless a configuration says what the tensors show."""
    size = about["tubelet_size"]
    tubelet = size if isinstance(size, list) else [size, about.get("patch_size"), about.get("patch_size")]
    sizes = [arguments["tubelet"], *arguments["patch_size"]]
    if any(stated_size not in (None, seen) for stated_size, seen in zip(tubelet, sizes)):
        raise ValueError(f"config.json says tubelets of {tubelet}, and the weights have {sizes}.")
    if kind == "vivit" and about.get("use_mean_pooling"):
        raise ValueError("ViViT takes its class token. Received: use_mean_pooling True")


def sampling(kind, classes):
    """Returns how the published models sample frames, and why: nothing in a file says it."""
    if kind == "videomae" and classes == SEGMENTS:
        return {"stride": 1, "segments": True}, "published for Something-Something: one frame of each of 16 segments"
    stride = KINETICS[kind]
    return {"stride": stride, "segments": False}, f"published for Kinetics: every {stride}. frame"


def _of_vivit(processor):
    """Reads ViViT's processor, which rescales to -1..1; normalization comes after that."""
    entries = {name: value for name, value in processor.items() if value is not None}
    scale, offset = entries.pop("rescale_factor", 1 / 127.5) * 255, float(entries.pop("offset", True))
    half = {"image_mean": 0.5, "image_std": 0.5} if processor and entries.get("do_normalize", True) else {}
    mean, std = ([*_three(entries.get(f"image_{name}", half.get(f"image_{name}", plain)))]
                 for name, plain in (("mean", 0.0), ("std", 1.0)))  # fmt: skip
    if not entries.get("do_normalize", bool(processor)):
        mean, std = [0.0] * 3, [1.0] * 3
    if not entries.get("do_rescale", True) or not scale > 0:
        raise ValueError(f"Pixels must be rescaled. Received: do_rescale={entries.get('do_rescale')}, {scale / 255}")
    named = {"image_processor_type": "VivitImageProcessor", **entries} if processor else {}
    own = {"do_normalize": True, "image_mean": [(offset + m) / scale for m in mean],
           "image_std": [s / scale for s in std]}  # fmt: skip
    statistics, evaluation, origins = transformers_config.read_processor({**named, **own} if processor else {}, "ViViT")
    return statistics, evaluation, origins


def _three(value):
    return value if isinstance(value, (list, tuple)) else [value] * 3


def _of_videomae(processor):
    return transformers_config.read_processor(processor, "VideoMAE")


PROCESSORS = {"vivit": _of_vivit, "videomae": _of_videomae}

FORMAT = Format(
    name="huggingface-video",
    rows=ROWS,
    detect=detect_by(PATCHES[0]),
    aliases=ALIASES,
    architecture=architecture,
    placeholders=lambda arguments: {"norm": NORMS[arguments["final_norm"]], "head": "classifier"},
    ignored=r"pooler\..*|decoder\..*|encoder_to_decoder\..*|mask_token|.*position_ids",
    head_names=r"classifier\..*",
)

# The authors' names: timm's, with separate biases of query and value.
AUTHORS_ALIASES = ((r"^(model|module|backbone)\.", ""), (r"^encoder\.(?=(blocks|patch_embed|norm)\b)", ""))
AUTHORS = {"frames": 16, "image_size": 224}
ROWS_OF_AUTHORS = (
    PROJECTION._replace(theirs=PATCHES[1]),
    Row("encoder/projection/bias", "patch_embed.proj.bias", SAME),
    *(row for row in timm.ROWS if str(row.ours).startswith("block_")),
    *torch_norm("norm", "{last}"),
    *torch_dense("head", "head"),
)


def architecture_of_authors(shapes, checkpoint):
    width, channels, length, *patch_size = need(shapes, PATCHES[1], 5)
    heads, why = published_heads(width)
    of_mean, classes = "fc_norm.weight" in shapes, classes_of(shapes, "head")
    sampled, sampling_why = sampling("videomae", classes)
    arguments = {
        **AUTHORS,
        "tubelet": length,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(timm.BLOCK.replace(".", r"\.").replace("{i}", r"(\d+)") + r"\.")),
        "num_heads": heads,
        "mlp_dim": need(shapes, f"{timm.BLOCK.format(i=0)}.mlp.fc1.weight", 2)[0],
        "tokens": {"class_token": False, "class_position": True},
        "position": "sincos1d",
        "pooling": "gap",
        "final_norm": "after" if of_mean else "before",
        "pool_epsilon": None,
        "norm": {"epsilon": 1e-6},
        "block": {
            "gelu": "exact",
            "qkv_bias": f"{timm.BLOCK.format(i=0)}.attn.q_bias" in shapes,
            "key_bias": False,
        },
        "num_classes": classes,
    }
    statistics, evaluation, prepared = _of_videomae({})
    origins = {
        "num_heads": why,
        "frames": Assumed("VideoMAE's: 16 frames of 224 x 224 pixels"),
        "sampling": sampling_why,
        "norm.epsilon": "VideoMAE's",
    }
    return merged(arguments, statistics), {**evaluation, "frames": sampled}, origins | prepared


AUTHORS_FORMAT = FORMAT._replace(
    name="timm-video",
    rows=ROWS_OF_AUTHORS,
    detect=detect_by(PATCHES[1]),
    aliases=AUTHORS_ALIASES,
    architecture=architecture_of_authors,
    placeholders=lambda arguments: {"last": "fc_norm" if arguments["final_norm"] == "after" else "norm"},
    ignored=r"decoder\..*|encoder_to_decoder\..*|mask_token",
    head_names=r"head\..*",
)
