"""KerasHub's presets: the same answers as KerasHub's, of images of any size; or one sentence."""

import json
import pathlib
import shutil

import keras
import numpy as np
import pytest

from keras_vit import from_pretrained, load_weights, preprocess, vit
from keras_vit.models.metadata import metadata
from keras_vit.traits import Traits
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "keras_hub"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/io.npz"))


def copied(case, folder, **changes):
    """Returns a copy of a golden preset with other settings: `(file, place)` in words, and a value or `None`."""
    shutil.copytree(GOLDEN / case, folder)
    for words, value in changes.items():
        file, *place = words.split("__")
        path = folder / f"{file}.json"
        content = inside = json.loads(path.read_text())
        for name in place[:-1]:
            inside = inside[name]
        inside[place[-1]] = value
        path.write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_of_keras_hub(case):
    golden = np.load(GOLDEN / case / "io.npz")
    model = from_pretrained(GOLDEN / case)
    found = model.predict(preprocess(model, [*golden["images"]]), verbose=0)
    task = json.loads(path.read_text())["config"] if (path := GOLDEN / case / "task.json").is_file() else {}
    activation = keras.activations.get(task.get("activation"))
    found = keras.ops.convert_to_numpy(activation(keras.ops.convert_to_tensor(found)))
    assert np.abs(golden["answers"]).max() > 0.05 and found.shape == golden["answers"].shape
    np.testing.assert_allclose(found, golden["answers"], atol=1e-4 * max(1, np.abs(golden["answers"]).max()))


def test_what_a_preset_says_of_its_model():
    models = {case: from_pretrained(GOLDEN / case) for case in CASES}
    gives = {case: Traits(model).gives for case, model in models.items() if case != "dinov2"}
    assert gives == {"vit": "classes", "vit_plain": "classes", "deit": "labels"}
    kinds = {case: metadata(model) for case, model in models.items()}
    assert kinds["vit_plain"]["evaluation"]["resize"] == "direct" and kinds["vit"]["evaluation"]["resize"] == "aspect"
    assert kinds["dinov2"]["format"] == "keras_hub-dinov2" and kinds["vit"]["from"]["mean"] == "task.json"
    rescale = from_pretrained(GOLDEN / "vit").get_layer("rescale")
    np.testing.assert_allclose(rescale.std, [0.229, 0.224, 0.225], rtol=1e-6)
    np.testing.assert_allclose(rescale.mean, np.array([2.118, 2.036, 1.804]) * rescale.std, rtol=1e-6)


def test_another_head_another_size_and_a_model_of_ones_own(tmp_path):
    assert from_pretrained(GOLDEN / "vit", num_classes=9, image_size=16).output_shape == (None, 9)
    assert from_pretrained(GOLDEN / "deit", num_classes=0).output_shape == (None, 8)
    sizes = dict(patch_size=4, width=8, depth=1, num_heads=2, mlp_dim=12, num_classes=5)
    options = dict(block={"gelu": "exact"}, representation_size=6, norm={"epsilon": 1e-6})
    mine = vit(None, image_size=(8, 12), mean=[0.4850, 0.4561, 0.4059], std=[0.229, 0.224, 0.225], **sizes, **options)
    load_weights(mine, GOLDEN / "vit", head="new")
    theirs = from_pretrained(GOLDEN / "vit")
    for name in ("encoder", "block_0", "norm"):
        for one, other in zip(mine.get_layer(name).weights, theirs.get_layer(name).weights, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_would_be_prepared_or_computed_otherwise_is_refused(tmp_path):
    names = iter(range(100))

    def read(case="vit", **changes):
        folder = copied(case, tmp_path / str(next(names)), **changes)
        return lambda: from_pretrained(folder)

    converter = "task__config__preprocessor__config__image_converter__config__"
    backbone = "task__config__backbone__config__"
    wrong = unexpected(
        [
            (read(task__config__pooling="gap"), "`pooling` .* with a class token must be 'token'. Received: 'gap'"),
            (read("deit", task__config__pooling="gap"), "must be 'token'. Received: 'gap'"),
            (
                read("vit_plain", task__config__pooling="token"),
                "without a class token must be 'gap'. Received: 'token'",
            ),
            (read(task__config__activation="relu"), "`activation` .* must be one of None, .* Received: 'relu'"),
            (read(task__config__preprocessor=None), "Nothing in the preset says how pixels .* pass mean and std"),
            (read(**{f"{converter}pad_to_aspect_ratio": True}), "cannot do .* pad_to_aspect_ratio=True"),
            (read(**{f"{converter}interpolation": "lanczos3"}), "cannot do .* interpolation='lanczos3'"),
            (read(**{f"{converter}crop_size": [8, 8]}), r"cannot do .* crop_size=\[8, 8\]"),
            (read(**{f"{converter}image_size": [8, 8]}), r"image_size=\[8, 8\] for a model of \(8, 12\)"),
            (read(**{f"{converter}scale": 0}), "`scale` and `offset` in task.json must be finite .* Received: 0"),
            (read(**{f"{converter}offset": ["a", 1, 2]}), "`scale` and `offset` .* Received"),
            (read(**{f"{converter}offset": [1, 2]}), "`scale` and `offset` .* Received"),
            (read(**{f"{backbone}num_layers": 2}), "missing in the file: block_1/"),
            (read(**{f"{backbone}hidden_dim": 12}), r"kernel of patches .* must be \(4, 4, 3, 12\)"),
            (read(**{f"{backbone}patch_size": [2, 4]}), r"must be \(2, 4, 3, 8\), as its settings say"),
            (read(**{f"{backbone}mlp_dim": 16}), "of another shape: block_0/mlp/dense_1"),
            (read(**{f"{backbone}num_heads": 4}), "of another shape: block_0/mha"),
            (read(task__config__num_classes=7), "of another shape: task/layers/dense_1"),
            (read(task__config__intermediate_dim=None), "not in the model: task/layers/dense_1"),
            (read(**{f"{backbone}image_shape": [16, 16, 3]}), r"image_size=\[8, 12\] for a model of \(16, 16\)"),
            (read(**{f"{backbone}image_shape": None}), "does not describe a model of keras_hub"),
            (read(**{f"{backbone}use_mha_bias": False}), "is a bias, and use_mha_bias is off"),
            (read(**{f"{backbone}dtype": {"class_name": "DTypePolicyMap"}}), "KerasHub, quantized, DTypePolicyMap"),
        ]
    )
    assert not wrong
