import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, load_weights, vit
from keras_vit.models.map_heads import head_of
from tests.checkpoints.helpers import GOLDEN

DEPTH = GOLDEN.parent / "depth"


def copied(case, folder, drop=(), add=None, **changes):
    """Copies a golden file into a folder; `backbone` changes its backbone's part of config.json."""
    config = json.loads((DEPTH / case / "config.json").read_text())
    config.get("backbone_config", {}) and config["backbone_config"].update(changes.pop("backbone", {}))
    (folder / "config.json").write_text(json.dumps(config | changes))
    arrays = safetensors.numpy.load_file(DEPTH / case / "checkpoint.safetensors")
    arrays = {name: array for name, array in arrays.items() if not name.startswith(tuple(drop))} | (add or {})
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    "case, changes, pattern",
    [
        ("depth_anything", dict(depth_estimation_type="absolute"), "depth_estimation_type.*'absolute'"),
        ("depth_anything", dict(max_depth=-3), "max_depth.*-3"),
        ("depth_anything", dict(head_in_index=0), "head_in_index.*0"),
        ("depth_anything", dict(patch_size=16), "patch_size.*14. Received: 16"),
        ("depth_anything", dict(reassemble_factors=[4, 2, 1]), "one factor for each of 4 blocks"),
        ("depth_anything", dict(reassemble_factors=[3, 2, 1, 0.5]), "powers of two"),
        ("depth_anything", dict(backbone=dict(out_indices=[1, 2, 3])), "up to the last, 4. Received: .1, 2, 3"),
        ("depth_anything", dict(backbone=dict(out_indices=[2, 1, 3, 4])), "rising blocks"),
        ("depth_anything", dict(backbone=dict(hidden_act="swish")), "hidden_act.*'swish'"),
        ("depth_anything", dict(backbone=dict(model_type="dinov2_with_registers")), None),
        ("dpt_depth", dict(is_hybrid=True), "is_hybrid"),
        ("dpt_depth", dict(backbone_config={"model_type": "swinv2"}), "plain ViT of its paper"),
        ("dpt_depth", dict(readout_type="concatenate"), "readout_type.*'concatenate'"),
        ("dpt_depth", dict(readout_type="add"), "not in the model: .*readout_projects"),
        ("dpt_depth", dict(add_projection=True), "no projection of its own"),
        ("dpt_depth", dict(use_bias_in_fusion_residual=False), "opposite of `use_batch_norm"),
        ("dpt_depth", dict(use_batch_norm_in_fusion_residual=True), "missing in the file: .*batch_norm1"),
        ("dpt_depth", dict(backbone_out_indices=[0, 1, 2]), "up to the last, 3. Received: .0, 1, 2"),
    ],
)
def test_what_config_json_says_is_computed_or_refused(case, changes, pattern, tmp_path):
    copied(case, tmp_path, **changes)
    if pattern is None:  # the same function without registers
        assert from_checkpoint(tmp_path).output_shape[-1] == 1
        return
    with pytest.raises(ValueError, match=pattern) as error:
        from_checkpoint(tmp_path)
    assert len(str(error.value)) < 1500


def test_a_bare_file_is_an_encoder_if_asked(tmp_path):
    shutil.copy(DEPTH / "depth_anything" / "checkpoint.safetensors", tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="put the source's config.json next to the file, or pass num_classes=0"):
        from_checkpoint(tmp_path, num_heads=3)
    encoder = from_checkpoint(tmp_path, num_heads=3, num_classes=0)
    assert encoder.output_shape == (None, 24) and head_of(encoder) is None


def test_the_encoder_under_another_head(tmp_path):
    for case in ("depth_anything", "dpt_depth"):
        path = DEPTH / case / "checkpoint.safetensors"
        whole = from_checkpoint(path)
        for options, output in ((dict(num_classes=5), (None, 5)), (dict(pooling="none"), (None, 17, 24))):
            encoder = from_checkpoint(path, **options)
            assert encoder.output_shape == output
            kernel = lambda model: np.asarray(model.get_layer("block_3").mlp.fc1.kernel)  # noqa: E731
            np.testing.assert_array_equal(kernel(encoder), kernel(whole))


def test_a_segmenter_s_encoder_is_loaded(tmp_path):
    """Its head has batch normalization, which this format has no name for."""
    add = {"head.head.1.weight": np.ones(8, "float32"), "head.head.4.weight": np.ones((3, 8, 1, 1), "float32")}
    copied("dpt_depth", tmp_path, drop=("head.",), add=add)
    with pytest.warns(UserWarning, match="has a head that is not one linear layer"):
        assert from_checkpoint(tmp_path).output_shape == (None, 24)


def test_metric_depth_ends_at_its_largest(tmp_path):
    model = from_checkpoint(copied("depth_anything", tmp_path, depth_estimation_type="metric", max_depth=80))
    assert head_of(model)["end"] == "sigmoid" and head_of(model)["scale"] == 80.0
    depth = np.asarray(model(np.random.default_rng(0).uniform(0, 255, size=(2, 56, 56, 3))))
    assert depth.min() >= 0 and depth.max() <= 80 and np.ptp(depth) > 1


def test_images_are_prepared_as_published(tmp_path):
    for case, mean in (("depth_anything", [0.485, 0.456, 0.406]), ("dpt_depth", 0.5)):
        rescale = from_checkpoint(DEPTH / case / "checkpoint.safetensors").get_layer("rescale")
        np.testing.assert_allclose(rescale.mean, mean)
        rule = rescale.metadata["evaluation"]
        assert (rule["resize"], rule["interpolation"], rule["antialias"]) == ("direct", "bicubic", True)
    copied("dpt_depth", tmp_path)
    stated = {"feature_extractor_type": "DPTFeatureExtractor", "size": 384, "resample": 2, "image_mean": [0.5] * 3}
    stated |= {"image_std": [0.5] * 3, "ensure_multiple_of": 1, "keep_aspect_ratio": False}  # as of Intel/dpt-large
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated))
    rule = from_checkpoint(tmp_path).get_layer("rescale").metadata["evaluation"]
    assert (rule["resize"], rule["interpolation"]) == ("direct", "bilinear")
    copied("depth_anything", tmp_path)
    processor = {"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": True, "ensure_multiple_of": 14}
    processor |= {"size": {"height": 518, "width": 518}, "resample": 3, "do_pad": False, "size_divisor": None}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    with pytest.warns(UserWarning, match="keeps the aspect ratio"):
        from_checkpoint(tmp_path)


def test_sizes_between_patches_are_refused():
    with pytest.raises(ValueError, match="must divide the image size. Received: an image of 720 x 1280 and patches"):
        from_checkpoint(DEPTH / "depth_anything" / "checkpoint.safetensors", image_size=(720, 1280))


def test_half_precision_ends_in_float32():
    """Meters in float16 would be steps of 3 cm at 50 m, and in bfloat16 of 25 cm."""
    path, size = DEPTH / "depth_anything" / "checkpoint.safetensors", (28, 42)
    images = np.random.default_rng(0).uniform(0, 255, (1, *size, 3)).astype("float32")
    whole = np.asarray(from_checkpoint(path, image_size=size)(images))
    half = from_checkpoint(path, image_size=size, dtype="mixed_bfloat16")
    found = half(images)
    assert half.output.dtype == "float32" and found.dtype == "float32"
    assert np.abs(np.asarray(found) - whole).max() < 0.05 * np.ptp(whole)
    assert len(np.unique(np.asarray(found))) > 0.9 * len(np.unique(whole))


def test_a_classifier_does_not_take_the_head(tmp_path):
    path = DEPTH / "depth_anything" / "checkpoint.safetensors"
    sizes = dict(width=24, depth=4, num_heads=3, mlp_dim=48, patch_size=14, image_size=56, mean=0.4)
    model = vit(None, **sizes, num_classes=0, block={"layer_scale": 1.0})
    load_weights(model, path)
    np.testing.assert_array_equal(
        np.asarray(model.get_layer("block_0").mlp.fc1.kernel),
        np.asarray(from_checkpoint(path).get_layer("block_0").mlp.fc1.kernel),
    )
