"""ViLT's files: transformers' names and the authors', beside `tests/golden/vilt`, and what is refused."""

import json
import re

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import class_names, from_checkpoint, load_weights, preprocess, vilt, vit
from keras_vit.checkpoints.remarks import Assumption
from tests.checkpoints.helpers import assert_same_weights, file_of, unexpected, weights, write
from tests.checkpoints.towers import VILT

pytestmark = pytest.mark.backend

FILE = VILT / "checkpoint.safetensors"
CONFIG = json.loads((VILT / "config.json").read_text())
IO = dict(np.load(VILT / "io.npz"))
X = {"images": IO["images_nhwc"][1:2, :, :64] * 127.5 + 127.5, "texts": IO["tokens"][1:2].astype("int32")}
TO_AUTHORS = (
    (r"^classifier\.", "vqa_classifier."),
    (r"^vilt\.embeddings\.(text|token_type)", r"\1"),
    (r"^vilt\.pooler", "pooler"),
    (r"^vilt\.embeddings\.patch_embeddings\.projection", "transformer.patch_embed.proj"),
    (r"^vilt\.embeddings\.cls_token", "transformer.cls_token"),
    (r"^vilt\.embeddings\.position_embeddings", "transformer.pos_embed"),
    (r"^vilt\.layernorm", "transformer.norm"),
    (r"^vilt\.encoder\.layer\.", "transformer.blocks."),
    (r"attention\.output\.dense", "attn.proj"),
    (r"layernorm_before", "norm1"),
    (r"layernorm_after", "norm2"),
    (r"intermediate\.dense", "mlp.fc1"),
    (r"output\.dense", "mlp.fc2"),
)


def arrays(change=lambda arrays: arrays):
    return change(safetensors.numpy.load_file(FILE))


def written(folder, found, config=CONFIG):
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return write(folder / "model.safetensors", found)


def logits(model):
    return keras.ops.convert_to_numpy(model(X, training=False))


def by_authors(found):
    """Returns arrays under the authors' names, queries, keys and values in one, as Lightning saves them."""
    renamed = {}
    for name, array in found.items():
        for pattern, ours in TO_AUTHORS:
            name = re.sub(pattern, ours, name)
        renamed[name] = array
    for i in range(2):
        for kind in ("weight", "bias"):
            parts = [f"transformer.blocks.{i}.attention.attention.{part}.{kind}" for part in ("query", "key", "value")]
            renamed[f"transformer.blocks.{i}.attn.qkv.{kind}"] = np.concatenate([renamed.pop(part) for part in parts])
    return renamed | {"text_embeddings.position_ids": np.arange(12)[None]}


def test_a_model_carries_its_answers_and_its_preparation():
    model = from_checkpoint(FILE)
    np.testing.assert_allclose(logits(model), IO["logits"][1:2], atol=1e-4)
    assert class_names(model)[:2] == ("answer 0", "answer 1") and model.name == "vilt_custom_16"
    assert preprocess(model, np.zeros((30, 40, 3), "uint8")).shape == (1, 64, 64, 3)
    about = model.get_layer("rescale").metadata
    assert about["format"] == "huggingface-vilt" and about["from"]["pad"] == "BERT's"


def test_transformers_keeps_the_aspect_of_pictures(tmp_path):
    written(tmp_path, arrays())
    processor = dict(feature_extractor_type="ViltFeatureExtractor", size=384, size_divisor=32, do_pad=True,
                     resample=3, image_mean=[0.4] * 3, image_std=[0.5] * 3)  # fmt: skip
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    with pytest.warns(Assumption, match="transformers keeps the aspect ratio of an image .preprocessor_config.json.,"):
        rescale = from_checkpoint(tmp_path).get_layer("rescale")
    assert rescale.mean == [0.4] * 3
    rule = dict(resize="direct", crop_pct=None, crop_offset="floor", interpolation="bicubic", antialias=True)
    assert rescale.metadata["evaluation"] == rule


def test_the_authors_names(tmp_path):
    """Their epsilons are 1e-12 for words and 1e-6 elsewhere."""
    path = written(tmp_path, by_authors(arrays()), None)
    model = from_checkpoint(path, num_heads=3)
    other = from_checkpoint(FILE, norm={"epsilon": 1e-6}, word_epsilon=1e-12)
    assert_same_weights(weights(model), weights(other))
    np.testing.assert_array_equal(logits(model), logits(other))
    assert model.get_layer("rescale").metadata["format"] == "timm-vilt"
    prefixed = write(tmp_path / "model.safetensors", {f"module.{k}": v for k, v in by_authors(arrays()).items()})
    assert_same_weights(weights(from_checkpoint(prefixed, num_heads=3)), weights(other))


def test_other_sizes_and_heads(tmp_path):
    model = from_checkpoint(FILE, image_size=(32, 80), channels=1, num_classes=3)
    assert [tuple(x.shape) for x in model.inputs] == [(None, 32, 80, 1), (None, 12)] and model.output_shape[1] == 3
    known, new = weights(from_checkpoint(FILE)), weights(model)
    np.testing.assert_array_equal(known["answer/kernel"], new["answer/kernel"])
    assert not new["head/kernel"].any()
    pooled = from_checkpoint(FILE, num_classes=0)
    np.testing.assert_allclose(pooled(X), IO["pooled"][1:2], atol=1e-4)
    bare = lambda found: {k.removeprefix("vilt."): a for k, a in found.items() if k.startswith("vilt.")}  # noqa: E731
    path = written(tmp_path, arrays(bare), CONFIG | {"pad_token_id": 100})
    base = from_checkpoint(path)
    assert base.get_layer("mask").pad == 100 and base.output_shape == (None, 24)
    assert from_checkpoint(path, num_classes=4).output_shape == (None, 4)
    rank = {"rank_output.weight": np.ones((1, 24), "float32"), "rank_output.bias": np.ones(1, "float32")}
    ranked = from_checkpoint(written(tmp_path, arrays(bare) | rank))
    np.testing.assert_allclose(logits(ranked), IO["pooled"][1:2].sum(1, keepdims=True) + 1, atol=1e-4)


def test_own_files_and_weights_into_a_model(tmp_path):
    model = from_checkpoint(FILE)
    model.save(tmp_path / "own.keras")
    np.testing.assert_array_equal(logits(from_checkpoint(tmp_path / "own.keras")), logits(model))
    other = from_checkpoint(tmp_path / "own.keras", image_size=32, num_classes=2)
    assert other.output_shape == (None, 2)
    sizes = dict(vocabulary=101, length=12, image_size=64, width=24, depth=2, num_heads=3, mlp_dim=48, num_classes=7)
    mine = vilt("Ti/16", **sizes, norm={"epsilon": 1e-12}, block={"gelu": "exact"})
    np.testing.assert_allclose(logits(load_weights(mine, FILE)), logits(model), atol=1e-6)


def test_damaged_files_are_one_error(tmp_path):
    for name in (name for name in arrays() if ".encoder." not in name):
        for shape in (None, (), (1, 1, 1)):
            found = arrays() | ({} if shape is None else {name: np.ones(shape, "float32")})
            if shape is None:
                del found[name]
            path = written(tmp_path, found)
            assert not unexpected([(lambda path=path: from_checkpoint(path), ".")]), (name, shape)


def test_what_answers_no_questions_is_refused(tmp_path):
    words = {"mlm_score.bias": np.ones(101, "float32")}
    path = written(tmp_path, arrays(lambda a: {k: v for k, v in a.items() if "classifier" not in k} | words))
    two = arrays(lambda a: a | {"classifier.0.weight": np.ones((48, 48), "float32")})
    (tmp_path / "two").mkdir()
    two = written(tmp_path / "two", two)
    said = "has a head that answers no questions, and cannot be loaded: {}.*For a head of your own, pass head='new'"
    wrong = [
        (dict(source=path), said.format("mlm_score.bias")),
        (dict(source=two), said.format("nlvr2_classifier.0.bias, nlvr2_classifier.0.weight")),
        (dict(source=FILE, part="text"), "must have a text tower of huggingface, openai, google"),
        (dict(source=FILE, rotary="golden"), "has no argument 'rotary'"),
        (dict(source=file_of("hf_vit"), length=7), "has no argument 'length'"),
        (
            dict(source=FILE, length=7),
            "words/position_embedding|text_embeddings.position_embeddings.weight is .12, 24.",
        ),
    ]
    assert not unexpected([(lambda given=given: from_checkpoint(**given), says) for given, says in wrong])
    for options in ({"head": "new", "num_classes": 2}, {"num_classes": 2}):
        assert from_checkpoint(path, **options).output_shape == (None, 2)
    small = dict(variant="Ti/16", image_size=64, width=24, depth=2, num_heads=3, mlp_dim=48, num_classes=7)
    into = [(lambda: load_weights(vit(**small), FILE), "does not match the model; not in the model: ")]
    assert not unexpected(into)
