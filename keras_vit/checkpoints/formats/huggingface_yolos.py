"""Names in Hugging Face transformers' files of YOLOS: a ViT with tokens for boxes, and the heads on them."""

import numpy as np

from keras_vit.checkpoints.formats import huggingface, transformers_config
from keras_vit.checkpoints.tables import LINEAR, SAME, Form, Format, Row, need, renamed
from keras_vit.models.options import merged

DETECTION, MIDDLE = "embeddings.detection_tokens", "encoder.mid_position_embeddings"
SIZES = ("class_labels_classifier.layers.2.bias", DETECTION)  # whose shapes say how many classes and boxes there are
HEAD = r"(class_labels_classifier|bbox_predictor)\..*"


def _prefix_first(arrays, _):
    """Reads positions of the class token, the patches and the boxes; ours are of both kinds of tokens, then patches."""
    if len(arrays) == 1:  # its shape alone is asked for
        return arrays
    positions, tokens = arrays
    boxes = tokens.shape[1]
    return [np.concatenate([positions[:, :1], positions[:, -boxes:], positions[:, 1:-boxes]], axis=1)]


POSITIONS = Form(_prefix_first, lambda arrays, _: arrays)
REPLACED = ("encoder/position_embedding", "encoder/register_tokens", "encoder/distillation_token")
ROWS = (
    *(row for row in huggingface.ROWS if row.ours not in REPLACED),
    Row("encoder/position_embedding", ("embeddings.position_embeddings", DETECTION), POSITIONS),
    Row("position_{i}/table", (f"{MIDDLE}.{{i}}", DETECTION), POSITIONS),
    Row("encoder/register_tokens", DETECTION, SAME),
    Row("head/class{j}/kernel", "class_labels_classifier.layers.{j}.weight", LINEAR),
    Row("head/class{j}/bias", "class_labels_classifier.layers.{j}.bias", SAME),
    Row("head/box{j}/kernel", "bbox_predictor.layers.{j}.weight", LINEAR),
    Row("head/box{j}/bias", "bbox_predictor.layers.{j}.bias", SAME),
)


def detect(names):
    return any(name.endswith(DETECTION) for name in names)


def canonical(shapes):
    """Maps the positions before each block after the first to their parts of one tensor."""
    names = renamed(shapes, huggingface.ALIASES)
    whole = names.pop(MIDDLE, None)
    return names | {f"{MIDDLE}.{i + 1}": (whole, i) for i in range(shapes[whole][0] if whole else 0)}


def architecture(shapes, checkpoint):
    arguments, _, origins = huggingface.architecture(shapes, checkpoint)
    boxes = need(shapes, DETECTION, 3)[1]
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "YOLOS")
    more = {
        "tokens": {"registers": boxes, "block_positions": f"{MIDDLE}.1" in shapes},
        "pooling": "none",
        "num_classes": 0,
    }
    return merged(arguments, statistics, more), evaluation, origins | prepared


FORMAT = Format(
    name="huggingface-yolos",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    placeholders=lambda arguments: {"head": "classifier"},
    ignored=r"pooler\..*",
    head_names=HEAD,
)
