"""Names in KerasHub's presets: classifiers and backbones of ViT and DeiT, and DINOv2's backbones."""

from keras_vit.checkpoints.files.keras_hub import ACTIVATIONS, EMBEDDING, IN_TASK, NOTES, activation, refusal
from keras_vit.checkpoints.formats.keras_hub_converter import read_converter
from keras_vit.checkpoints.tables import (
    HEADS_BIAS,
    HEADS_IN,
    HEADS_OUT,
    SAME,
    Format,
    Row,
    dense,
    each,
    joined,
    need,
    norm,
)
from keras_vit.models.options import merged
from keras_vit.utils import checks

PARTS = ("query", "key", "value")
TABLE = each(lambda a, heads: a[None], lambda a, heads: a[0])  # ours has an axis for the batch


def _dense(ours, theirs):
    return dense(ours, theirs, "/vars/0", "/vars/1")


def _norm(ours, theirs):
    return norm(ours, theirs, "/vars/0", "/vars/1")


def _attention(theirs):
    parts = [f"block_{{i}}/{theirs}/{part}_dense" for part in PARTS]
    return (
        Row("block_{i}/attention/qkv/kernel", tuple(f"{part}/vars/0" for part in parts), joined(HEADS_IN)),
        Row("block_{i}/attention/qkv/bias", tuple(f"{part}/vars/1" for part in parts), joined(HEADS_BIAS)),
        Row("block_{i}/attention/proj/kernel", f"block_{{i}}/{theirs}/output_dense/vars/0", HEADS_OUT),
        Row("block_{i}/attention/proj/bias", f"block_{{i}}/{theirs}/output_dense/vars/1", SAME),
    )


HEAD = (*_dense("pre_logits", "task/layers/dense"), *_dense("head", "task/layers/{head}"))
BLOCK = (
    *_norm("block_{i}/norm1", "block_{i}/layer_norm_1"),
    *_attention("mha"),
    *_norm("block_{i}/norm2", "block_{i}/layer_norm_2"),
)
VIT_ROWS = (
    *_dense("encoder/projection", "embeddings/patch_embedding"),
    Row("encoder/class_token", "embeddings/vars/0", SAME),
    Row("encoder/position_embedding", "embeddings/position_embedding/vars/0", TABLE),
    *BLOCK,
    *_dense("block_{i}/mlp/fc1", "block_{i}/mlp/dense_1"),
    *_dense("block_{i}/mlp/fc2", "block_{i}/mlp/dense_2"),
    *_norm("norm", "encoder/layer_norm"),
    *HEAD,
)
DEIT_ROWS = (
    *_dense("encoder/projection", "embeddings/patch_embedding"),
    Row("encoder/class_token", "embeddings/vars/0", SAME),
    Row("encoder/register_tokens", "embeddings/vars/1", SAME),  # of two tokens, the head reads the first
    Row("encoder/position_embedding", "embeddings/vars/2", SAME),
    *BLOCK,
    *_dense("block_{i}/mlp/fc1", "block_{i}/mlp/dense"),
    *_dense("block_{i}/mlp/fc2", "block_{i}/output_layer/dense"),
    *_norm("norm", "encoder/layer_norm"),
    *HEAD,
)
DINO_ROWS = (
    *_dense("encoder/projection", "embeddings/patch_embeddings/projection"),
    Row("encoder/class_token", "embeddings/cls_token", SAME),
    Row("encoder/register_tokens", "embeddings/register_tokens", SAME),
    Row("encoder/position_embedding", "embeddings/position_embeddings", SAME),
    *_norm("block_{i}/norm1", "block_{i}/norm1"),
    *_attention("attention/attention"),
    Row("block_{i}/scale1/gamma", "block_{i}/layer_scale1/vars/0", SAME),
    *_norm("block_{i}/norm2", "block_{i}/norm2"),
    *_dense("block_{i}/mlp/fc1", "block_{i}/mlp/{fc1}"),
    *_dense("block_{i}/mlp/fc2", "block_{i}/mlp/{fc2}"),
    Row("block_{i}/scale2/gamma", "block_{i}/layer_scale2/vars/0", SAME),
    *_norm("norm", "layer_normalization"),
)
ALIASES = (
    (r"^layers/(vi|dei)_t_encoder/encoder_layers/(vi|dei)_t_encoder_block/", "block_0/"),
    (r"^layers/(vi|dei)_t_encoder/encoder_layers/(vi|dei)_t_encoder_block_(\d+)/", r"block_\3/"),
    (r"^layers/(vi|dei)_t_encoder/", "encoder/"),
    (r"^layers/(vi_t_patching_and_embedding|dei_t_embeddings|dinov2_embedding)/", "embeddings/"),
    (r"^layers/dinov2_encoder/layers/dinov2_layer/", "block_0/"),
    (r"^layers/dinov2_encoder/layers/dinov2_layer_(\d+)/", r"block_\1/"),
    (r"^layers/layer_normalization/", "layer_normalization/"),
)


def architecture(shapes, checkpoint):
    stated = checkpoint.notes[NOTES]
    options, task = stated["backbone"], stated["task"]
    height, width, channels = options["image_shape"]
    arguments = {
        "image_size": (height, width),
        "channels": channels,
        "patch_size": checks.pair("patch_size", options["patch_size"]),
        "width": options["hidden_dim"],
        "depth": options["num_layers"],
        "num_heads": options["num_heads"],
        "mlp_dim": options.get("mlp_dim", options.get("intermediate_dim")),
        "tokens": {"class_token": options.get("use_class_token", True), "class_position": True},
        "norm": {"epsilon": options.get("layer_norm_epsilon", 1e-6)},
        "block": {"gelu": "exact", "qkv_bias": options.get("use_mha_bias", True)},
        "pooling": "token" if options.get("use_class_token", True) else "gap",
        "num_classes": 0,
    }
    _check_types(options)
    own = _of_dino(shapes, options) if stated["family"] == "DINOV2" else {}
    own = {"tokens": {"registers": 1}} if stated["family"] == "DeiT" else own
    arguments = merged(arguments, own, _of_task(arguments, task))
    kernel = next((shapes[name] for name in KERNELS if name in shapes), ())
    expected = (*arguments["patch_size"], channels, options["hidden_dim"])
    if kernel != expected:
        raise ValueError(
            f"The kernel of patches of {str(checkpoint.path)!r} must be {expected}, as its settings say. "
            f"Received: {kernel or 'none'}"
        )
    statistics, evaluation, prepared = read_converter(
        stated["converter"], stated["prepared"], own.get("runs_at", (height, width))
    )
    config = "task.json" if task is not None else "config.json"
    origins = dict.fromkeys(("num_heads", "block.gelu", "norm.epsilon"), config)
    return merged(arguments, statistics), evaluation, origins | prepared


KERNELS = ("embeddings/patch_embedding/vars/0", "embeddings/patch_embeddings/projection/vars/0")


def _check_types(options):
    """Raises ValueError for a quantized backbone: its weights are integers with scales."""
    policy = options.get("dtype")
    policy = policy if isinstance(policy, dict) else {"class_name": "DTypePolicy", "config": {"name": policy}}
    name = (policy.get("config") or {}).get("name")
    if policy.get("class_name") != "DTypePolicy" or "_from_" in str(name):
        raise ValueError(refusal(why=f"quantized, {policy.get('class_name')} {name or ''}".rstrip()))


def _of_dino(shapes, options):
    """Returns DINOv2's own arguments: its table of positions is of another size than its images."""
    registers, gated = options.get("num_register_tokens", 0), options.get("use_swiglu_ffn", False)
    hidden = need(shapes, f"block_0/mlp/{'weights_out' if gated else 'fc2'}/vars/0", 2)[0]
    table = options.get("position_embedding_shape", (518, 518))
    size = tuple(options["image_shape"][:2])
    return {
        "image_size": tuple(table[:2]),
        **({"runs_at": size} if size != tuple(table[:2]) else {}),
        "mlp_dim": hidden,
        "tokens": {"class_token": True, "class_position": None, "registers": registers},
        "norm": {"epsilon": 1e-6},
        "block": {"swiglu": gated, "layer_scale": 1.0},
    }


def _of_task(arguments, task):
    """Returns the head's arguments."""
    if task is None:
        return {}
    pooling, last = task.get("pooling", "token"), activation(task)
    if last not in ACTIVATIONS:
        raise ValueError(
            f"`activation` of a classifier of KerasHub must be one of {', '.join(map(str, ACTIVATIONS))}. "
            f"Received: {last!r}"
        )
    needed = "token" if arguments["tokens"]["class_token"] else "gap"
    if pooling != needed:  # KerasHub's average counts the class token too, and its first token may be a patch
        raise ValueError(
            f"`pooling` of a classifier of KerasHub with{'' if needed == 'token' else 'out'} a class token must be "
            f"{needed!r}. Received: {pooling!r}"
        )
    return {"num_classes": task["num_classes"], "representation_size": task.get("intermediate_dim")}


def _placeholders(arguments):
    names = ("weights_in", "weights_out") if arguments["block"]["swiglu"] else ("fc1", "fc2")
    return {"head": "dense_1" if arguments["representation_size"] else "dense", **dict(zip(("fc1", "fc2"), names))}


FORMAT = Format(
    name="keras_hub",
    rows=VIT_ROWS,
    detect=lambda names: any(name.startswith("layers/vi_t_encoder/") for name in names),
    aliases=ALIASES,
    architecture=architecture,
    placeholders=_placeholders,
    head_names=rf"{IN_TASK}.*",
)
DEIT = FORMAT._replace(
    name="keras_hub-deit",
    rows=DEIT_ROWS,
    detect=lambda names: any(name.startswith("layers/dei_t_encoder/") for name in names),
)
DINOV2 = FORMAT._replace(
    name="keras_hub-dinov2",
    rows=DINO_ROWS,
    detect=lambda names: any(name.startswith("layers/dinov2_encoder/") for name in names),
    ignored=r"embeddings/(mask_token|interpolated)",
    resample="bicubic-table",
)
DINOV2_SMOOTH = DINOV2._replace(
    name="keras_hub-dinov2-antialias",
    detect=lambda names: f"{EMBEDDING}/position_embeddings_antialias" in names,
    aliases=(*ALIASES, (r"^(embeddings/position_embeddings)_antialias$", r"\1")),
    resample="bicubic-antialias",
)
