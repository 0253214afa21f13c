"""Names in files of ViLT: Hugging Face transformers', and its authors', whose encoder has timm's."""

import re

from keras_vit.checkpoints.formats import huggingface, timm, transformers_config
from keras_vit.checkpoints.inputs import POSITION
from keras_vit.checkpoints.tables import (
    SAME,
    Form,
    Format,
    Row,
    blocks,
    classes_of,
    need,
    renamed,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

WORDS, PLACES = (f"text_embeddings.{kind}_embeddings.weight" for kind in ("word", "position"))
# Tables whose rows are added to all words, or to all tokens of a modality: a text is of the first type.
TYPES, MODALITIES = "text_embeddings.token_type_embeddings", "token_type_embeddings"
PATCHES = ("embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight")  # transformers', the authors'
HIDDEN = "classifier.0.weight"  # of the head for answers
ADDED = Form(  # the second of theirs to each row of the first
    lambda arrays, heads: [sum(arrays)], lambda ours, heads: [ours[0], ours[0].reshape(-1, ours[0].shape[-1])[0]]
)
ROWS = (
    Row("words/word_embedding", WORDS, SAME),
    Row("words/position_embedding", (PLACES, f"{TYPES}.0"), ADDED),
    Row("words_norm/gamma", "text_embeddings.LayerNorm.weight", SAME),
    Row("words_norm/beta", ("text_embeddings.LayerNorm.bias", f"{MODALITIES}.0"), ADDED),
    *torch_dense("pre_logits", "pooler.dense"),
    *torch_dense("answer", "classifier.0"),
    *torch_norm("answer_norm", "classifier.1"),
    *torch_dense("head", "classifier.3"),
    *torch_dense("head", "rank_output"),  # of retrieval
)
IMAGE_PATHS = re.compile(r"block_\{i\}/.*|encoder/(projection/.*|class_token)|norm/.*")
ALIASES = ((r"^vilt\.", ""), (r"^embeddings\.((?:text|token_type)_embeddings\.)", r"\1"), *huggingface.IN_MEMORY)
ALIASES_OF_AUTHORS = ((r"^transformer\.", ""), (r"^vqa_classifier\.", "classifier."))
# What transformers' models, and the authors' code, have where no file says it.
DEFAULTS = {"vilt": huggingface.STATED, None: huggingface.BARE}
AUTHORS = {None: {"hidden_act": "gelu", "layer_norm_eps": 1e-6}}
BERT = 1e-12  # the authors' epsilon of words


def rows_of(form, position):
    """Returns the rows of ViLT, with those that a format of images has for its encoder."""
    inside = (row for row in form.ROWS if IMAGE_PATHS.fullmatch(str(row.ours)))
    return (*ROWS, *inside, Row(POSITION, (position, f"{MODALITIES}.1"), ADDED))


def canonical_by(aliases):
    """Returns a function that gives a file's tensors the names in the rows, and each vector of a table its own.

    A head that compares two images has its authors' name: transformers calls it as that for answers.
    """

    def canonical(shapes):
        names = renamed(shapes, aliases)
        for table in (TYPES, MODALITIES):
            place = names.pop(f"{table}.weight", None)
            rows, *_ = shapes.get(place) or (0,)
            names |= {f"{table}.{i}": (place, i) for i in range(rows)}
        width = shapes.get(names.get(WORDS), ())[1:]
        if HIDDEN in names and shapes[names[HIDDEN]][1:] != width:
            names = {re.sub(r"^classifier\.", "nlvr2_classifier.", name): place for name, place in names.items()}
        return names

    return canonical


def detect_by(projection):
    """Returns a function that says whether a file has words, and patches under a name."""
    return lambda names: all(any(name.endswith(end) for name in names) for end in (WORDS, projection))


def architecture(shapes, checkpoint):
    of_authors = PATCHES[1] in shapes
    vocabulary, width = need(shapes, WORDS, 2)
    _, channels, *patch_size = need(shapes, PATCHES[of_authors], 4)
    config, defaults = checkpoint.config, AUTHORS if of_authors else DEFAULTS
    config_arguments, origins = transformers_config.read_model(config, width, defaults)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "ViLT")
    pad = config.get("pad_token_id")
    block, fc1 = (timm.BLOCK, "mlp.fc1") if of_authors else (huggingface.BLOCK, "intermediate.dense")
    arguments = {
        "vocabulary": vocabulary,
        "length": need(shapes, PLACES, 2)[0],
        "pad": 0 if pad is None else pad,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(block.replace(".", r"\.").replace("{i}", r"(\d+)") + r"\.")),
        "mlp_dim": need(shapes, f"{block.format(i=0)}.{fc1}.weight", 2)[0],
        "word_epsilon": BERT if of_authors else config_arguments["norm"]["epsilon"],
        "block": {"qkv_bias": any(name.endswith(("query.bias", "qkv.bias")) for name in shapes)},
        "tokens": {"class_token": True, "class_position": True},
        "pooling": "first",
        "answer_dim": shapes[HIDDEN][0] if HIDDEN in shapes else 0 if "rank_output.weight" in shapes else None,
        "num_classes": classes_of(shapes, "classifier.3" if HIDDEN in shapes else "rank_output"),
    }
    origins = {**origins, "pad": "BERT's" if pad is None else transformers_config.CONFIG, **prepared}
    return merged(arguments, config_arguments, statistics), evaluation, origins


FORMAT = Format(
    name="huggingface-vilt",
    rows=rows_of(huggingface, "embeddings.position_embeddings"),
    detect=detect_by(PATCHES[0]),
    canonical=canonical_by(ALIASES),
    architecture=architecture,
    ignored=rf".*position_ids|({TYPES}|{MODALITIES})\.\d+",
    head_names=r"(classifier|rank_output|mlm_score|itm_score|nlvr2_classifier)\..*",
    resample="zoom",  # with aligned corners
)
AUTHORS_FORMAT = FORMAT._replace(
    name="timm-vilt",
    rows=rows_of(timm, "pos_embed"),
    detect=detect_by(PATCHES[1]),
    canonical=canonical_by(ALIASES_OF_AUTHORS),
    placeholders=lambda arguments: {"norm": "norm", "root": ""},
)
