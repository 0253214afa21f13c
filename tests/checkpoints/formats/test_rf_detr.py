"""RF-DETR's files: `tests/golden/objects` has some of transformers, and what it computes."""

import dataclasses
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import Detect, from_checkpoint, load_run, preprocess, save_checkpoint, segment
from keras_vit.checkpoints.formats.coco import COCO
from keras_vit.models.kinds import name_of
from keras_vit.tasks.detect.group_loss import GroupLoss
from tests.checkpoints.helpers import weights
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "objects"
DIRECT = {"mean": 0.0, "std": 1.0, "value_range": (0, 1)}  # pixels that are prepared already


def edges(boxes):
    """Returns top, left, bottom and right of boxes by center, width and height."""
    center, half = boxes[..., 1::-1], boxes[..., 3:1:-1] / 2
    return np.concatenate([center - half, center + half], axis=-1)


def changed(folder, tmp_path, tensors=lambda arrays: arrays, **entries):
    """Returns a copy of a golden folder with other tensors, or entries in its configuration; `None` drops one."""
    target = tmp_path / "changed"
    shutil.copytree(GOLDEN / folder, target, dirs_exist_ok=True)
    config = {**json.loads((target / "config.json").read_text()), **entries}
    (target / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    arrays = safetensors.numpy.load_file(target / "model.safetensors")
    safetensors.numpy.save_file(tensors(arrays), target / "model.safetensors")
    return target


@slow_on_jax
def test_boxes_logits_and_losses_are_transformers():
    io = np.load(GOLDEN / "rf_detr" / "io.npz")
    model = from_checkpoint(GOLDEN / "rf_detr", **DIRECT)
    assert model.output_shape == (None, 8, 4 + 7) and name_of(model) == "boxes"
    assert model.get_layer("rescale").metadata["evaluation"]["antialias"] is False
    learner = keras.Model(model.input, model.get_layer("boxes").input)
    found = np.asarray(learner(io["images_nhwc"]))
    np.testing.assert_allclose(found[:, -1, :, 4:], io["logits"], atol=5e-5)
    np.testing.assert_allclose(found[:, -1, :, :4], edges(io["boxes"]), atol=5e-5)
    np.testing.assert_allclose(found[:, 0, :, 4:], io["encoder_logits"], atol=5e-5)
    trained = learner(io["images_nhwc"], training=True)
    np.testing.assert_allclose(np.asarray(trained)[:, -1, :, 4:], io["training_logits"], atol=5e-5)
    truth = np.concatenate([edges(io["truth"]), io["truth"][..., 4:]], -1)
    np.testing.assert_allclose(np.asarray(GroupLoss(8).call(truth, trained)).mean(), io["loss"], rtol=1e-5)


@slow
def test_masks_and_found_boxes_are_transformers():
    io = np.load(GOLDEN / "rf_detr_masks" / "io.npz")
    model = from_checkpoint(GOLDEN / "rf_detr_masks", **DIRECT)
    masks = keras.Model(model.input, model.get_layer("masks").output)(io["images_nhwc"])
    np.testing.assert_allclose(np.moveaxis(np.asarray(masks), 1, -1), io["masks_nhwc"], atol=1e-4)
    output = np.asarray(model(io["images_nhwc"]))
    assert name_of(model) == "instances" and output.shape == (2, 8, 4 + 7 + 16 * 16)
    np.testing.assert_array_equal(output[..., 11:].reshape(masks.shape), np.asarray(masks))

    task, model = Detect.from_checkpoint(GOLDEN / "rf_detr_masks")
    task = dataclasses.replace(task, score=0.8)
    images = preprocess(model, io["photos"])
    for i, output in enumerate(np.asarray(model(images))):
        rows, own = task.result(output, io["photos"].shape[1:3]), io["found_image"] == i
        assert [row["category"] for row in rows] == [str(label) for label in io["found_labels"][own]]
        np.testing.assert_allclose([row["score"] for row in rows], io["found_scores"][own], atol=1e-3)
        left, top, right, bottom = io["found_boxes"][own].T
        shown = np.stack([left, top, right, bottom], -1).clip(0, [40, 30, 40, 30])
        boxes = np.array([row["bbox"] for row in rows])
        np.testing.assert_allclose(np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1), shown, atol=0.05)


@slow
def test_outputs_without_a_class_are_left_out(tmp_path):
    def without_gaps(arrays):  # which never are the best of a place, as in published files
        for name in arrays:
            if "class_embed" in name and name.endswith("bias"):
                arrays[name][[0, 3]] = -30
        return arrays

    names = {str(i): name for i, name in enumerate(["N/A", "cat", "dog", "N/A", "cow", "pig", "hen"])}
    source = changed("rf_detr", tmp_path, without_gaps, id2label=names)
    model, whole = from_checkpoint(source), from_checkpoint(changed("rf_detr", tmp_path / "whole", without_gaps))
    assert model.get_layer("rescale").metadata["labels"] == ["cat", "dog", "cow", "pig", "hen"]
    images = np.random.default_rng(0).uniform(0, 255, (1, 48, 48, 3)).astype("float32")
    kept = [0, 1, 2, 3, *(4 + i for i in (1, 2, 4, 5, 6))]
    np.testing.assert_array_equal(np.asarray(model(images)), np.asarray(whole(images))[..., kept])
    task, own = Detect.from_checkpoint(source)
    assert task == Detect(classes=("cat", "dog", "cow", "pig", "hen"), head="deformable", most=8)
    np.testing.assert_allclose(np.asarray(own(images)), np.asarray(model(images)), atol=1e-5)
    assert len(COCO) == 80 and COCO[1] == "person" and COCO[90] == "toothbrush" and 12 not in COCO


@slow
def test_a_detector_of_other_classes_keeps_all_but_their_layers(tmp_path):
    task = Detect(classes=("cat", "dog"), head="deformable", most=5)
    model = task.model(variant=None, weights=GOLDEN / "rf_detr")
    source = weights(from_checkpoint(GOLDEN / "rf_detr"))
    own = weights(model)
    for path, array in own.items():
        if path in ("head/references", "head/query"):
            want = source[path].reshape(3, 8, -1)[:, :5].reshape(15, -1)
            np.testing.assert_array_equal(array, want, err_msg=path)
        elif "/class/" not in path:
            np.testing.assert_array_equal(array, source[path], err_msg=path)
    assert own["head/head/class/kernel"].shape == (32, 2) and model.get_layer("head").groups == 3
    new = task.model(variant=None, weights=GOLDEN / "rf_detr", head="new")
    assert weights(new)["head/query"].shape == (13 * 5, 256)
    with pytest.raises(ValueError, match="a detector with this head and these classes"):
        task.model(variant=None, weights=GOLDEN / "rf_detr", head="require")


@slow
def test_another_size_round_trips_and_the_encoder_alone(tmp_path):
    model = from_checkpoint(GOLDEN / "rf_detr", image_size=72)
    model.save(tmp_path / "model.keras")
    images = np.random.default_rng(0).uniform(0, 255, (1, 72, 72, 3)).astype("float32")
    again = from_checkpoint(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(again(images)), np.asarray(model(images)))
    with pytest.raises(ValueError, match="A checkpoint's classifier ends in its head"):
        save_checkpoint(model, tmp_path / "out", format="timm")
    encoder = from_checkpoint(GOLDEN / "rf_detr", num_classes=0, pooling="gap")
    assert encoder.output_shape == (None, 24)


@pytest.mark.parametrize(
    "entries, tensors, said",
    [
        (dict(model_type="detr"), {}, "`model_type` must be rf_detr. Received: 'detr'"),
        (dict(decoder_activation_function="gelu"), {}, "decoder_activation_function='gelu' cannot be loaded"),
        ({}, {"backbone.0.projector.stages.1.1.weight": (4,)}, "one feature map. Received: several"),
        ({}, {"class_embed.bias": (9,)}, "class_embed.bias is .9,."),
        ({}, {"query_feat.weight": None}, "missing in the file: query_feat.weight"),
    ],
)
def test_refused(entries, tensors, said, tmp_path):
    def edited(arrays):
        arrays |= {name: np.zeros(shape, "float32") for name, shape in tensors.items() if shape}
        return {name: array for name, array in arrays.items() if tensors.get(name, ()) is not None}

    with pytest.raises(ValueError, match=said):
        from_checkpoint(changed("rf_detr", tmp_path, edited, **entries))


def test_settings_are_needed(tmp_path):
    shutil.copy(GOLDEN / "rf_detr" / "model.safetensors", tmp_path)
    with pytest.raises(ValueError, match="No tensor of RF-DETR shows its windows and heads: put the source's config"):
        from_checkpoint(tmp_path / "model.safetensors")


@slow
def test_roboflows_own_file_states_its_settings(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import argparse

    arrays = safetensors.numpy.load_file(GOLDEN / "rf_detr" / "model.safetensors")
    args = dict(num_windows=2, out_feature_indexes=[2, 4], sa_nheads=4, ca_nheads=8, resolution=48, two_stage=True)
    content = {"model": {name: torch.tensor(array) for name, array in arrays.items()}}
    for kind in (dict, argparse.Namespace):
        torch.save(content | {"args": kind(**args, class_names=list("abcdef"))}, tmp_path / "weights.pth")
        model = from_checkpoint(tmp_path / "weights.pth", num_heads=3)
        assert model.get_layer("rescale").metadata["labels"] == list("abcdef") and model.output_shape[-1] == 4 + 6
        assert model.input_shape == (None, 48, 48, 3) and model.get_layer("head").projector_epsilon == 1e-6
    torch.save(content | {"args": {**args, "class_names": ["a", "b"]}}, tmp_path / "weights.pth")
    with pytest.warns(UserWarning, match="has 7 outputs and 2 names; the first 2 are taken"):
        assert from_checkpoint(tmp_path / "weights.pth", num_heads=3).output_shape[-1] == 4 + 2
    torch.save(content | {"args": {**args, "two_stage": False}}, tmp_path / "weights.pth")
    with pytest.raises(ValueError, match="two_stage=False cannot be loaded"):
        from_checkpoint(tmp_path / "weights.pth", num_heads=3)


@slow
def test_instances_of_photos_are_transformers():
    io = np.load(GOLDEN / "rf_detr_masks" / "io.npz")
    model = from_checkpoint(GOLDEN / "rf_detr_masks")
    for i, found in enumerate(segment(model, io["photos"], "instance", threshold=0.8)):
        np.testing.assert_array_equal(found.map + (found.map >= 0), io["instance_map"][i])  # transformers counts from 1
        rows = io["instance_segments"][io["instance_segments"][:, 0] == i]
        assert [[i, each["id"] + 1, each["class"]] for each in found.segments] == rows.tolist()
    with pytest.raises(ValueError, match="`kind` must be 'instance': .* Received: kind='panoptic'"):
        segment(model, io["photos"], "panoptic")
    with pytest.raises(ValueError, match="see keras_vit.segment. Received: instances"):
        load_run(model)
