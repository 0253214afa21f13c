"""Names in Hugging Face transformers' files of CLIPSeg: the decoder on its towers, which are CLIP's."""

import re

from keras_vit.checkpoints.formats.transformers_config import part_of
from keras_vit.checkpoints.tables import CONV, SAME, Format, Row, blocks, need, torch_dense, torch_norm

KIND = "clipseg"
FILM = "decoder.film_mul.weight"
UPS = "decoder.transposed_convolution"
LAYER = "decoder.layers.{i}"
PARTS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "proj": "out_proj"}
NORMS = {"norm1": "layer_norm1", "norm3": "layer_norm2"}
CONVOLUTIONS = {"up": UPS, "conv": f"{UPS}.0", "up0": f"{UPS}.2", "up1": f"{UPS}.4"}  # the first, or the others
ROWS = (
    *torch_dense("decoder/film_mul", "decoder.film_mul"),
    *torch_dense("decoder/film_add", "decoder.film_add"),
    *torch_dense("decoder/reduce{i}", "decoder.reduces.{i}"),
    *(
        row
        for ours, theirs in PARTS.items()
        for row in torch_dense(f"decoder/block{{i}}/attention/{ours}", f"{LAYER}.self_attn.{theirs}")
    ),
    *(row for ours, theirs in NORMS.items() for row in torch_norm(f"decoder/block{{i}}/{ours}", f"{LAYER}.{theirs}")),
    *torch_dense("decoder/block{i}/mlp/fc1", f"{LAYER}.mlp.fc1"),
    *torch_dense("decoder/block{i}/mlp/fc2", f"{LAYER}.mlp.fc2"),
    *(Row(f"decoder/{ours}/kernel", f"{theirs}.weight", CONV) for ours, theirs in CONVOLUTIONS.items()),
    *(Row(f"decoder/{ours}/bias", f"{theirs}.bias", SAME) for ours, theirs in CONVOLUTIONS.items()),
)
DEFAULTS = {"extract_layers": [3, 6, 9], "conditional_layer": 0, "decoder_num_attention_heads": 4}  # transformers'
EPSILON = 1e-5
SIDE = 352  # of published processors' images


def architecture(shapes, checkpoint):
    width, units = need(shapes, FILM, 2)
    stated = {**DEFAULTS, **checkpoint.config}
    count = blocks(shapes, re.compile(r"decoder\.reduces\.(\d+)\.weight"))
    at = stated["conditional_layer"]
    if at not in range(count):
        raise ValueError(f"`conditional_layer` must be from 0 to {count - 1}. Received: {at!r}")
    arguments = {
        "blocks": count,
        "channels": need(shapes, "decoder.reduces.0.weight", 2)[1],
        "units": units,
        "width": width,
        "num_heads": stated["decoder_num_attention_heads"],
        "mlp_dim": need(shapes, f"{LAYER.format(i=0)}.mlp.fc1.weight", 2)[0],
        "condition_at": at,
        "refined": f"{UPS}.0.weight" in shapes,
        "epsilon": part_of(checkpoint.config, "vision").get("layer_norm_eps", EPSILON),
    }
    return arguments, {}, {}


def blocks_of(checkpoint, depth):
    """Returns the numbers of the blocks whose tokens the decoder takes, of an image tower of `depth` blocks."""
    numbers = checkpoint.config.get("extract_layers", DEFAULTS["extract_layers"])
    count = len([name for name in checkpoint.shapes if re.fullmatch(r"decoder\.reduces\.\d+\.weight", name)])
    if not isinstance(numbers, list) or len(numbers) != count or any(each not in range(depth) for each in numbers):
        raise ValueError(
            f"`extract_layers` must be {count} numbers of blocks, from 0 to {depth - 1}, in {str(checkpoint.path)!r}. "
            f"Received: {numbers!r}"
        )
    return numbers


def size_of(processor):
    """Returns the size to which a processor resizes images, a side or `(height, width)`."""
    size = processor.get("image_processor", processor).get("size") or SIDE
    return (size.get("height", SIDE), size.get("width", SIDE)) if isinstance(size, dict) else size


FORMAT = Format(
    name="huggingface-clipseg",
    rows=ROWS,
    detect=lambda names: FILM in names,
    architecture=architecture,
    ignored=r"clip\..*",
)
