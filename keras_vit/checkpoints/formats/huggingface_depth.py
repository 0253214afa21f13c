"""Names in Hugging Face transformers' files of depth: Depth Anything, on DINOv2, and DPT, on a ViT."""

import re

from keras_vit.checkpoints.formats import huggingface, huggingface_dinov2
from keras_vit.checkpoints.formats.transformers_config import GELUS
from keras_vit.checkpoints.tables import (
    CONV,
    SAME,
    Format,
    Missing,
    Otherwise,
    Row,
    need,
    renamed,
    torch_dense,
    torch_norm,
)
from keras_vit.utils import checks

STAGE, FUSION = "neck.reassemble_stage", "neck.fusion_stage.layers"
HEADS = {  # the three convolutions of the head, in Depth Anything and in DPT
    "head.conv1": "head.first", "head.conv2": "head.second", "head.conv3": "head.depth",
    "head.head.0": "head.first", "head.head.2": "head.second", "head.head.4": "head.depth",
}  # fmt: skip


def conv(ours, theirs):
    """Two rows: a PyTorch convolution, transposed or not."""
    return Row(f"{ours}/kernel", f"{theirs}.weight", CONV), Row(f"{ours}/bias", f"{theirs}.bias", SAME)


def batch_norm(ours, theirs):
    """Four rows: a PyTorch batch normalization."""
    statistics = {"moving_mean": "running_mean", "moving_variance": "running_var"}
    rows = (Row(f"{ours}/{name}", f"{theirs}.{their}", SAME) for name, their in statistics.items())
    return (*torch_norm(ours, theirs), *rows)


HEAD = (
    *torch_dense("head/readout{i}", f"{STAGE}.readout_projects.{{i}}.0"),
    *conv("head/reassemble{i}/proj", f"{STAGE}.layers.{{i}}.projection"),
    *conv("head/reassemble{i}/resize", f"{STAGE}.layers.{{i}}.resize"),
    Row("head/conv{i}/kernel", "neck.convs.{i}.weight", CONV),
    *(
        row
        for ours, theirs in (("skip{i}", "{i}.residual_layer1"), ("fusion{i}", "{i}.residual_layer2"))
        for row in (
            *conv(f"head/{ours}/conv{{j}}", f"neck.fusion.{theirs}.convolution{{j1}}"),
            *batch_norm(f"head/{ours}/norm{{j}}", f"neck.fusion.{theirs}.batch_norm{{j1}}"),
        )
    ),
    *conv("head/proj{i}", "neck.fusion.{i}.projection"),
    *(row for name in ("first", "second", "depth") for row in conv(f"head/{name}", f"head.{name}")),
)
# In the files and perhaps unused: the coarsest map is added to nothing; DPT takes its blocks' tokens as they are.
UNUSED = (
    r"neck\.fusion\.\d+\.residual_layer1\..*|.*\.num_batches_tracked|auxiliary_head\..*|embeddings\.mask_token"
    r"|layernorm\..*|pooler\..*"
)
NO_CONFIG = (
    "No tensor of a model of depth shows which blocks it uses and how it ends: put the source's config.json next to "
    "the file, or pass num_classes=0 for the encoder alone."
)


def has_neck(names):
    return any(name.startswith(f"{FUSION}.") for name in names)


def canonical_by(aliases):
    """Returns a function that gives a file's tensors the names in the rows: fusions are counted from the finest."""

    def canonical(shapes):
        names = renamed(shapes, aliases)
        last = max((int(name.split(".")[3]) for name in names if name.startswith(f"{FUSION}.")), default=0)
        return {_canonical(name, last): place for name, place in names.items()}

    return canonical


def _canonical(name, last):
    begin, _, end = name.rpartition(".")
    if begin in HEADS:
        return f"{HEADS[begin]}.{end}"
    match = re.fullmatch(rf"{re.escape(FUSION)}\.(\d+)\.(.*)", name)
    return f"neck.fusion.{last - int(match[1])}.{match[2]}" if match else name


def depth_anything(shapes, checkpoint):
    description = huggingface_dinov2.architecture(shapes, checkpoint, "Depth Anything")
    arguments, config = description[0], checkpoint.config
    if not config:
        return _without_config(description)
    backbone = config.get("backbone_config") or {}
    kind = config.get("depth_estimation_type", "relative")
    if kind not in ("relative", "metric"):
        raise ValueError(f"`depth_estimation_type` must be relative or metric. Received: {kind!r}")
    largest = 1 if config.get("max_depth") is None else config["max_depth"]
    if isinstance(largest, bool) or not isinstance(largest, (int, float)) or not largest > 0:
        raise ValueError(f"`max_depth` must be a number above 0. Received: {largest!r}")
    head = {
        "blocks": _blocks(_taken(backbone, [9, 10, 11, 12]), arguments["depth"], first=1),
        "normed": backbone.get("apply_layernorm", True),
        "whole": True,
        "readout": "ignore",
        "gelu": "exact",
        "doubles": False,
        "batch_norm": False,
        "end": {"relative": "relu", "metric": "sigmoid"}[kind],
        "scale": float(largest),
    }
    patch = config.get("patch_size", 14)
    if patch != arguments["patch_size"][0] and tuple([patch] * 2) != arguments["patch_size"]:
        raise ValueError(f"`patch_size` must be the backbone's, {arguments['patch_size'][0]}. Received: {patch!r}")
    return _with(head, shapes, checkpoint, description, "bicubic")


def dpt(shapes, checkpoint):
    config = checkpoint.config
    backbones = {name: config[name] for name in ("backbone_config", "backbone") if config.get(name)}
    if backbones and not config.get("is_hybrid"):
        raise ValueError(f"DPT must have the plain ViT of its paper as its backbone. Received: {next(iter(backbones))}")
    description = huggingface.architecture(shapes, checkpoint, "DPT")
    if "head.second.weight" not in shapes:  # of a segmenter
        return description
    if not config:
        return _without_config(description)
    arguments, normed = description[0], config.get("use_batch_norm_in_fusion_residual") or False
    biased = config.get("use_bias_in_fusion_residual")
    if biased is not None and biased == normed:
        raise ValueError(
            "`use_bias_in_fusion_residual` must be the opposite of `use_batch_norm_in_fusion_residual`. Received: "
            f"{biased} for both"
        )
    if config.get("add_projection"):
        raise ValueError("DPT's head of depth must have no projection of its own. Received: add_projection=True")
    readout = config.get("readout_type", "project")
    if readout not in ("project", "add", "ignore"):
        raise ValueError(f"`readout_type` must be project, add or ignore. Received: {readout!r}")
    head = {
        "blocks": _blocks(config.get("backbone_out_indices") or [2, 5, 8, 11], arguments["depth"], first=0),
        "normed": False,
        "whole": False,
        "readout": readout,
        "gelu": GELUS[config.get("hidden_act", "gelu")],
        "doubles": True,
        "batch_norm": normed,
        "end": "relu",
        "scale": 1.0,
    }
    return _with(head, shapes, checkpoint, description, "bilinear")


def _without_config(description):
    arguments, evaluation, origins = description
    return arguments, evaluation, {**origins, "maps": Missing(NO_CONFIG)}


def _taken(backbone, usual):
    """Returns the numbers of the blocks that a backbone's configuration names, counted from 1."""
    named = backbone.get("out_features") or []
    return backbone.get("out_indices") or [int(str(name).removeprefix("stage")) for name in named] or usual


def _blocks(numbers, depth, first):
    """Returns the blocks, counted from 0; raises ValueError unless they rise to the last one."""
    places = tuple((number + depth + 1 if number < 0 else number) - first for number in numbers)
    if list(places) != sorted(set(places)) or places[0] < 0 or places[-1] != depth - 1:
        raise ValueError(
            f"A head of depth must take tokens of rising blocks up to the last, {depth - 1 + first}. "
            f"Received: {list(numbers)}"
        )
    return places


def _with(head, shapes, checkpoint, description, positions):
    """Returns an encoder's description with that of the head, whose sizes are those of its tensors.

    `positions` is how the source resamples them for another aspect ratio.
    """
    arguments, evaluation, origins = description
    evaluation = dict(evaluation)
    aspect = evaluation.pop("aspect", None)
    if aspect and not any(aspect["multiple"] % side for side in checks.pair("patch_size", arguments["patch_size"])):
        evaluation["aspect"] = {**aspect, "positions": positions}
        remark = Otherwise(f"{origins['evaluation'][:-1]}; `estimate_depth` and `predict` keep it.")
        origins = {**origins, "evaluation": remark}
    config, count = checkpoint.config, len(head["blocks"])
    index, factors = config.get("head_in_index", -1), config.get("reassemble_factors", [4, 2, 1, 0.5])
    if index not in (-1, count - 1):
        raise ValueError(f"`head_in_index` must be the finest map's, -1. Received: {index}")
    if len(factors) != count:
        raise ValueError(f"`reassemble_factors` must have one factor for each of {count} blocks. Received: {factors}")
    sizes = {
        "filters": need(shapes, "neck.convs.0.weight", 4)[0],
        "neck": tuple(need(shapes, f"neck.convs.{i}.weight", 4)[1] for i in range(count)),
        "factors": tuple(factors),
        "hidden": need(shapes, "head.second.weight", 4)[0],
    }
    return arguments | {"maps": {"kind": "depth", **head, **sizes}}, evaluation, origins


def _format(name, encoder, detect, aliases, architecture, **options):
    return Format(
        name=name,
        rows=(*(row for row in encoder.ROWS if not str(row.ours).startswith(("head", "('head"))), *HEAD),
        detect=lambda names: has_neck(names) and detect(names),
        canonical=canonical_by(aliases),
        architecture=architecture,
        placeholders=encoder.FORMAT.placeholders,
        ignored=UNUSED,
        head_names=r"(neck|head|auxiliary_head)\..*",
        **options,
    )


DEPTH_ANYTHING = _format(
    "huggingface-depth-anything",
    huggingface_dinov2,
    huggingface_dinov2.detect,
    huggingface_dinov2.ALIASES,
    depth_anything,
)
DPT = _format(
    "huggingface-dpt",
    huggingface,
    huggingface.detect,
    ((r"^dpt\.", ""), *huggingface.ALIASES),
    dpt,
    resample="bilinear",
)
