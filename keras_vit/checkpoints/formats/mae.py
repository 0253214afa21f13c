"""The decoder of published masked autoencoders: files of MAE's and VideoMAE's authors, and Hugging Face's of both."""

import re
from typing import NamedTuple

import numpy as np

from keras_vit.checkpoints.describe import recognize
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.pytorch import check_pytorch
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.formats import huggingface, timm, video
from keras_vit.checkpoints.match import matching
from keras_vit.checkpoints.tables import LINEAR, SAME, Row, blocks, listing, need, torch_dense, torch_norm


def _of_blocks(rows, block, start):
    """Returns an encoder's rows of blocks, with the names that a decoder has there."""
    of_blocks = [row for row in rows if isinstance(row.ours, str) and row.ours.startswith("block_{i}/")]
    theirs = [
        tuple(name.replace(start, block) for name in row.theirs)
        if isinstance(row.theirs, tuple)
        else row.theirs.replace(start, block)
        for row in of_blocks
    ]
    return [row._replace(ours=f"decoder/{row.ours}", theirs=names) for row, names in zip(of_blocks, theirs)]


def _rows(encoder, prefix, block):
    """Returns the table of a decoder of MAE."""
    return (
        *torch_dense("decoder/embed", f"{prefix}decoder_embed"),
        Row("decoder/mask_token", f"{prefix}mask_token", SAME),
        Row("decoder/position", f"{prefix}decoder_pos_embed", SAME),
        *_of_blocks(encoder.ROWS, block, encoder.BLOCK.partition("{")[0]),
        *torch_norm("decoder/norm", f"{prefix}decoder_norm"),
        *torch_dense("decoder/predict", f"{prefix}decoder_pred"),  # pixels of a patch in our order
    )


def _rows_of_clips(rows, block, start):
    """Returns the table of a decoder of VideoMAE."""
    return (
        Row("decoder/embed/kernel", "encoder_to_decoder.weight", LINEAR),
        Row("decoder/mask_token", "mask_token", SAME),
        *_of_blocks(rows, block, start),
        *torch_norm("decoder/norm", "decoder.norm"),
        *torch_dense("decoder/predict", "decoder.head"),  # pixels of a tubelet in our order
    )


class Decoder(NamedTuple):
    """How a format writes a decoder; `stated` is what published files have where config.json says nothing.

    `heads` are the published ones by the decoder's width, where they depend on it.
    """

    embed: str
    block: str
    fc2: str
    rows: tuple
    stated: dict
    heads: dict = {}


MAE = {"decoder_num_attention_heads": 16, "mask_ratio": 0.75}
VIDEOMAE = {"decoder_num_attention_heads": 6, "mask_ratio": 0.9, "norm_pix_loss": True}
IN_DECODER, AUTHORS_BLOCKS = "decoder.decoder_layers.", "decoder.blocks."
AUTHORS = {"mask_ratio": 0.9, "norm_pix_loss": True, "last_epsilon": 1e-6}
HEADS = {192: 3, 384: 6, 512: 8, 640: 8}  # of the authors' four sizes, small to huge
DECODERS = {
    "timm": Decoder("decoder_embed", "decoder_blocks.", "mlp.fc2", _rows(timm, "", "decoder_blocks."), MAE),
    "huggingface": Decoder(
        "decoder.decoder_embed", IN_DECODER, "output.dense", _rows(huggingface, "decoder.", IN_DECODER), MAE
    ),
    "huggingface-video": Decoder(
        "encoder_to_decoder",
        IN_DECODER,
        "output.dense",
        _rows_of_clips(video.ROWS, IN_DECODER, huggingface.BLOCK.partition("{")[0]),
        VIDEOMAE,
    ),
    "timm-video": Decoder(
        "encoder_to_decoder",
        AUTHORS_BLOCKS,
        "mlp.fc2",
        _rows_of_clips(video.ROWS_OF_AUTHORS, AUTHORS_BLOCKS, timm.BLOCK.partition("{")[0]),
        AUTHORS,
        HEADS,
    ),
}


def read_decoder(source, *, num_heads=None, format="auto", sha256=None):
    """Reads the decoder of a published masked autoencoder.

    He et al. 2021 (arXiv:2111.06377), Tong et al. 2022 (arXiv:2203.12602). Width, depth and MLP are read from the
    tensors.

    Args:
        source: As in `keras_vit.from_checkpoint`.
        num_heads: Attention heads; `None` for those of `config.json`, else the published 16, of VideoMAE 6, of its
            authors' files those published for the width.
        format: As in `keras_vit.from_checkpoint`.
        sha256: As in `keras_vit.from_checkpoint`.

    Returns:
        A dictionary of arguments of `MaskedAutoencoder`, with `normalize` only if `config.json` says it; and a
        dictionary from weight paths, such as `"decoder/embed/kernel"`, to the arrays that the file has.

    Raises:
        ValueError: If there is no decoder, or it has tensors of another kind, or an unknown number of heads.
    """
    check_pytorch(source)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        form, names = recognize(checkpoint, format)
        decoder = DECODERS.get(form.name)
        if decoder is None or f"{decoder.embed}.weight" not in names:
            raise ValueError(
                f"{str(source)!r} must contain the decoder of a masked autoencoder, such as the authors' "
                "mae_pretrain_vit_base_full.pth or transformers' ViTMAEForPreTraining or VideoMAEForPreTraining. "
                "Received: no decoder; keras_vit.from_checkpoint reads the encoder, and MaskedAutoencoder(model) adds "
                "a new decoder."
            )
        shapes = {name: checkpoint.shape(place) for name, place in names.items()}
        config = decoder.stated | checkpoint.config
        width = need(shapes, f"{decoder.embed}.weight", 2)[0]
        heads = num_heads or config.get("decoder_num_attention_heads") or decoder.heads.get(width)
        if heads is None:
            raise ValueError(
                f"No tensor shows the number of the decoder's heads, and no decoder of width {width} is published: "
                f"pass decoder_heads. Received: {str(source)!r}"
            )
        options = {
            "width": width,
            "depth": blocks(shapes, re.compile(rf"{re.escape(decoder.block)}(\d+)\.")),
            "num_heads": heads,
            "mlp_dim": need(shapes, f"{decoder.block}0.{decoder.fc2}.weight", 2)[1],
            "mask_ratio": config["mask_ratio"],
        }
        options |= {"normalize": config["norm_pix_loss"]} if "norm_pix_loss" in config else {}
        options |= {name: value for name, value in decoder.stated.items() if name == "last_epsilon"}
        return options, _read(checkpoint, form._replace(rows=decoder.rows), names, options["depth"])


def _read(checkpoint, form, names, depth):
    """Reads the weights of a table. Raises ValueError for a tensor of the decoder that is not in the table."""
    paths = [row.ours.replace("{i}", str(i)) for row in form.rows for i in range(depth if "{i}" in row.ours else 1)]
    weights, used = {}, set()
    for path in dict.fromkeys(paths):
        rows_of_path = list(matching(form, path, {}))
        row = next((row for row in rows_of_path if all(name in names for name in row.theirs)), None)
        if row is not None:
            weights[path] = row.form.read([checkpoint.array(names[name]) for name in row.theirs], None)[0]
            used |= set(row.theirs)
            if not np.isfinite(weights[path]).all():
                raise ValueError(f"{str(checkpoint.path)!r} has numbers that are not finite in {listing(row.theirs)}")
    surplus = [name for name in names if re.match("decoder|encoder_to_decoder|mask_token", name) and name not in used]
    if surplus:
        raise ValueError(f"{str(checkpoint.path)!r} has tensors that are not in a decoder: {listing(surplus)}.")
    return weights
