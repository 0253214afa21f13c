"""Names in diffusers' files of `AutoencoderKL`: the encoder's and the decoder's."""

import re

from keras_vit.checkpoints.tables import (
    CONV,
    FLAT_TO_HEADS,
    LINEAR_HEADS_IN,
    LINEAR_HEADS_OUT,
    SAME,
    Format,
    Missing,
    Row,
    blocks,
    need,
    torch_norm,
)

KIND = "AutoencoderKL"
SETTINGS = "config.json"
BEFORE = (("query", "to_q"), ("key", "to_k"), ("value", "to_v"), ("proj_attn", "to_out.0"))  # 2023's names, later ones
COMPUTED = {"act_fn": "silu", "latents_mean": None, "latents_std": None}  # with others, something else is computed
BLOCKS = {"down_block_types": "DownEncoderBlock2D", "up_block_types": "UpDecoderBlock2D"}


def _conv(ours, theirs):
    return Row(f"{ours}/kernel", f"{theirs}.weight", CONV), Row(f"{ours}/bias", f"{theirs}.bias", SAME)


def _residual(ours, theirs):
    """Returns the rows of a residual block."""
    return (
        *(row for i in (1, 2) for row in torch_norm(f"{ours}_norm{i}", f"{theirs}.norm{i}")),
        *(row for i in (1, 2) for row in _conv(f"{ours}_conv{i}", f"{theirs}.conv{i}")),
        *_conv(f"{ours}_shortcut", f"{theirs}.conv_shortcut"),
    )


def _rows(part, projection, level, levels, between):
    """Returns the rows of a part, which has blocks of a `level`, ours and theirs, and convolutions between levels."""
    middle = f"{part}.mid_block"
    attention = f"{middle}.attentions.0"
    inside = [("query", "to_q", LINEAR_HEADS_IN), ("key", "to_k", LINEAR_HEADS_IN), ("value", "to_v", LINEAR_HEADS_IN)]
    return (
        *_conv("conv_in", f"{part}.conv_in"),
        *_residual("mid_res_{i}", f"{middle}.resnets.{{i}}"),
        *torch_norm("mid_norm", f"{attention}.group_norm"),
        *(Row(f"mid_attention/{ours}/kernel", f"{attention}.{theirs}.weight", form) for ours, theirs, form in inside),
        *(Row(f"mid_attention/{ours}/bias", f"{attention}.{theirs}.bias", FLAT_TO_HEADS) for ours, theirs, _ in inside),
        Row("mid_attention/attention_output/kernel", f"{attention}.to_out.0.weight", LINEAR_HEADS_OUT),
        Row("mid_attention/attention_output/bias", f"{attention}.to_out.0.bias", SAME),
        *_residual(f"{level}_{{i}}_res_{{j}}", f"{part}.{levels}.{{i}}.resnets.{{j}}"),
        *_conv(f"{level}_{{i}}_conv", f"{part}.{levels}.{{i}}.{between}.0.conv"),
        *torch_norm("norm_out", f"{part}.conv_norm_out"),
        *_conv("conv_out", f"{part}.conv_out"),
        *_conv("projection", projection),
    )


def _stated(checkpoint):
    """Returns what the settings say, and the origins; raises ValueError for what is computed otherwise."""
    config = checkpoint.config
    kind = config.get("_class_name", KIND)
    if kind != KIND:
        raise ValueError(f"An autoencoder must be an {KIND}. Received: {checkpoint.path.name!r} of {kind!r}")
    other = [f"{name}={config[name]!r}" for name, usual in COMPUTED.items() if config.get(name, usual) != usual]
    other += [f"{name}={config[name]!r}" for name, usual in BLOCKS.items() if {*config.get(name, [usual])} != {usual}]
    if other:
        raise ValueError(f"An autoencoder with {', '.join(other)} cannot be loaded: its images would be wrong.")
    if not config:
        missing = Missing(
            f"No tensor shows the groups and the scale of the latents: put {SETTINGS} of the autoencoder next to its "
            "file, or pass groups and scaling_factor."
        )
        return {"groups": None, "scaling_factor": None}, dict.fromkeys(("groups", "scaling_factor"), missing)
    arguments = {
        "groups": config.get("norm_num_groups", 32),  # where it says nothing, the values of diffusers' class
        "scaling_factor": config.get("scaling_factor", 0.18215),
        "shift_factor": config.get("shift_factor") or 0.0,
    }
    size = config.get("sample_size")
    size = {} if size is None else {"image_size": tuple(size) if isinstance(size, list) else size}
    return arguments | size, dict.fromkeys((*arguments, *size), SETTINGS)


def _architecture(part, levels, widths_of, projection):
    first = re.compile(rf"{part}\.{levels}\.(\d+)\.")

    def architecture(shapes, checkpoint):
        count = blocks(shapes, first)
        resnet = f"{part}.{levels}.{{i}}.resnets."
        widths = [need(shapes, f"{resnet.format(i=i)}0.conv1.weight", 4)[0] for i in range(count)]
        depths = {blocks(shapes, re.compile(re.escape(resnet.format(i=i)) + r"(\d+)\.")) for i in range(count)}
        if len(depths) > 1:
            raise ValueError(f"All levels must have as many residual blocks. Received: {sorted(depths)}")
        out, into = (need(shapes, f"{part}.{end}.weight", 4) for end in ("conv_out", "conv_in"))
        arguments = widths_of(widths, depths.pop(), out[0], into[1])
        arguments |= {
            "attention": any(name.startswith(f"{part}.mid_block.attentions.0.") for name in shapes),
            "projection": f"{projection}.weight" in shapes,
        }
        stated, origins = _stated(checkpoint)
        return arguments | stated, {}, origins

    return architecture


def _of_encoder(widths, depth, out, into):
    return {"widths": tuple(widths), "depth": depth, "latent_channels": out // 2, "channels": into}


def _of_decoder(widths, depth, out, into):
    return {"widths": tuple(reversed(widths)), "depth": depth - 1, "latent_channels": into, "channels": out}


def _format(part, projection, other, *names, widths_of):
    level, levels, between = names
    return Format(
        name=f"diffusers-{part}",
        rows=_rows(part, projection, level, levels, between),
        detect=lambda names: f"{part}.{levels}.0.resnets.0.conv1.weight" in names,
        architecture=_architecture(part, levels, widths_of, projection),
        aliases=tuple((rf"(attentions\.\d+)\.{before}\.", rf"\1.{after}.") for before, after in BEFORE),
        ignored=other,
    )


ENCODER = _format(
    "encoder", "quant_conv", r"(decoder|post_quant_conv)\..*", "down", "down_blocks", "downsamplers",
    widths_of=_of_encoder,
)  # fmt: skip
DECODER = _format(
    "decoder", "post_quant_conv", r"(encoder|quant_conv)\..*", "up", "up_blocks", "upsamplers", widths_of=_of_decoder
)
