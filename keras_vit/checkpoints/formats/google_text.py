"""Names in big_vision's `.npz` files: the text tower of SigLIP and LiT."""

import re

import numpy as np

from keras_vit.checkpoints.formats import google
from keras_vit.checkpoints.formats.huggingface_text import FORMAT as TOWERS_FORMAT
from keras_vit.checkpoints.tables import SAME, Form, Row, blocks, need, norm

WORDS, POSITIONS, OLDER = "Embed_0/embedding", "positions", "Transformer/posembed_input/pos_embedding"
TABLE = Form(lambda arrays, heads: [arrays[0][0]], lambda ours, heads: [ours[0][None]])  # (1, length, width)
SUM = Form(  # very old files have positions in the encoder too
    lambda arrays, heads: [np.sum(arrays, axis=0)[0]], lambda ours, heads: [ours[0][None], 0 * ours[0][None]]
)
ROWS = (
    Row("words/word_embedding", WORDS, SAME),
    Row("words/position_embedding", (POSITIONS, OLDER), SUM),
    Row("words/position_embedding", POSITIONS, TABLE),
    *(row for row in google.ROWS if str(row.ours).startswith("block_{i}/")),
    *norm("norm", "Transformer/encoder_norm", "/scale", "/bias"),
    Row("projection/kernel", "head/kernel", SAME),
    Row("projection/bias", "head/bias", SAME),
)
SIMILARITY = {"params/t": "logit_scale", "params/b": "logit_bias"}


def canonical(shapes):
    """As `google.canonical`, for the tensors of the text tower, and both numbers of the similarity."""
    prefix = next(name for name in shapes if name.endswith(WORDS)).removesuffix(WORDS)
    places = {name.removeprefix(prefix): name for name in shapes if name.startswith(prefix)}
    places = {name.replace("Encoder_0/", "Transformer/"): place for name, place in places.items()}
    places = {POSITIONS if name == "pos_embedding" else name: place for name, place in places.items()}
    names = google.canonical({name: shapes[place] for name, place in places.items()})
    found = {  # a block of a stacked tensor is a pair
        name: (places[short[0]], *short[1:]) if isinstance(short, tuple) else places[short]
        for name, short in names.items()
    }
    return found | {ours: theirs for theirs, ours in SIMILARITY.items() if theirs in shapes}


def architecture(shapes, checkpoint):
    vocabulary, width = need(shapes, WORDS, 2)
    block = google.BLOCK.format(i=0)
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, POSITIONS, 3)[1],
        "width": width,
        "depth": blocks(shapes, re.compile(r"Transformer/encoderblock_(\d+)/")),
        "num_heads": need(shapes, f"{google.ATTENTION.format(i=0)}/query/kernel", 3)[1],
        "mlp_dim": need(shapes, f"{block}/MlpBlock_3/Dense_0/kernel", 2)[1],
        "causal": False,
        "pooling": "last",
        "projection": need(shapes, "head/kernel", 2)[1] if "head/kernel" in shapes else None,
        "projection_bias": "head/bias" in shapes,
        "gelu": "tanh",
        "epsilon": 1e-6,
    }
    rules = dict.fromkeys(("causal", "pooling", "gelu", "epsilon"), "Google's rule for its files")
    return arguments, {"tokens": "siglip"}, rules


FORMAT = TOWERS_FORMAT._replace(
    name="google-text",
    rows=ROWS,
    detect=lambda names: any(re.fullmatch(rf"(.*/)?{WORDS}", name) for name in names),
    canonical=canonical,
    architecture=architecture,
    ignored=r"logit_(scale|bias)",
)
