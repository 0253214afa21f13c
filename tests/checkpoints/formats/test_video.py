"""ViViT and VideoMAE: the golden files, what is read and what is refused."""

import json
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, load_weights, preprocess, video_vit
from keras_vit.checkpoints.formats import video
from keras_vit.preparing.clip_preparation import frames_rule
from keras_vit.utils.resampling import resize_matrix
from tests.checkpoints.helpers import GOLDEN, benchmark, unexpected

pytestmark = [pytest.mark.backend, pytest.mark.filterwarnings("ignore::keras_vit.checkpoints.remarks.Assumption")]

FOLDER = GOLDEN.parent / "video"
golden = benchmark("golden_answers")


def read(case, **options):
    return from_checkpoint(FOLDER / case / "checkpoint.safetensors", **options)


def written(case, folder, change=None, tensors=None, processor=None):
    """Writes a golden folder with another configuration, other tensors or a processor; returns the file."""
    shutil.copy(FOLDER / case / "checkpoint.safetensors", folder / "model.safetensors")
    if tensors is not None:
        arrays = safetensors.numpy.load_file(folder / "model.safetensors")
        safetensors.numpy.save_file(tensors(arrays), folder / "model.safetensors")
    config = json.loads((FOLDER / case / "config.json").read_text())
    if change is not None:
        config = {name: value for name, value in {**config, **change}.items() if value is not None}
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    for file in folder.glob("preprocessor_config.json"):
        file.unlink()
    if processor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder / "model.safetensors"


def logits(model, case):
    videos = np.load(FOLDER / case / "io.npz")["videos_nthwc"]
    return keras.ops.convert_to_numpy(model(golden.pixels(model, videos), training=False))


@pytest.mark.parametrize("case", ["vivit", "videomae"])
def test_logits_are_the_original_s(case, tmp_path):
    model = read(case)
    expected = np.load(FOLDER / case / "io.npz")["logits"]
    np.testing.assert_allclose(logits(model, case), expected, atol=1e-5)
    model.save(tmp_path / "m.keras")
    for again in (
        from_checkpoint(tmp_path / "m.keras"),
        load_weights(keras.models.clone_model(model), FOLDER / case / "checkpoint.safetensors"),
    ):
        np.testing.assert_allclose(logits(again, case), expected, atol=1e-5)
    assert read(case, num_classes=3).output_shape == (None, 3)


def test_a_model_without_head_keeps_the_last_norm():
    """VideoMAE's `fc_norm` comes after the mean and before the classifier: an embedding has it."""
    arrays = safetensors.numpy.load_file(FOLDER / "videomae" / "checkpoint.safetensors")
    found = logits(read("videomae", num_classes=0), "videomae") @ arrays["classifier.weight"].T
    expected = np.load(FOLDER / "videomae" / "io.npz")["logits"]
    np.testing.assert_allclose(found + arrays["classifier.bias"], expected, atol=1e-5)


def test_what_the_metadata_say():
    """ViViT: x / 127.5 - 1 and no deviation, every second frame; VideoMAE: ImageNet's, every fourth."""
    vivit, mae = read("vivit"), read("videomae")
    rescale = vivit.get_layer("rescale")
    ends = keras.ops.convert_to_numpy(rescale(np.array([0.0, 127.5, 255.0]).reshape(1, 1, 1, 3)))
    np.testing.assert_allclose(ends.ravel(), [-1, 0, 1], atol=1e-6)
    assert frames_rule(vivit) == {"stride": 2, "segments": False, "centered": False}
    assert rescale.metadata["evaluation"]["crop_pct"] == 224 / 256
    assert mae.get_layer("rescale").mean == [0.485, 0.456, 0.406]
    assert frames_rule(mae) == {"stride": 4, "segments": False, "centered": False}
    clip = np.random.default_rng(0).integers(0, 256, (20, 40, 50, 3)).astype("uint8")
    assert preprocess(mae, clip).shape == (1, 4, 32, 32, 3)
    assert video.sampling("videomae", 174)[0] == {"stride": 1, "segments": True}


def test_processors(tmp_path):
    """As transformers' own: rescaled, moved, then normalized."""
    pixels = np.array([0.0, 100.0, 255.0]).reshape(1, 1, 1, 3).astype("float32")
    base = {"image_processor_type": "VivitImageProcessor", "size": {"shortest_edge": 256}, "crop_size": 224}
    for options, wanted in (
        ({"do_normalize": False, "offset": True, "rescale_factor": 1 / 127.5}, pixels / 127.5 - 1),
        ({"do_normalize": False, "offset": False, "rescale_factor": 1 / 255}, pixels / 255),
        ({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]},
         (pixels / 127.5 - 1 - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7]),
        ({}, (pixels / 127.5 - 1 - 0.5) / 0.5),
    ):  # fmt: skip
        path = written("vivit", tmp_path, processor={**base, **options})
        found = from_checkpoint(path).get_layer("rescale")(pixels)
        np.testing.assert_allclose(keras.ops.convert_to_numpy(found), wanted, atol=1e-5)
    mae = {"image_processor_type": "VideoMAEImageProcessor", "size": {"shortest_edge": 224}, "crop_size": 224}
    for name in ("VideoMAEImageProcessor", "VideoMAEFeatureExtractor"):
        path = written("videomae", tmp_path, processor={**mae, "image_processor_type": name})
        assert from_checkpoint(path).get_layer("rescale").metadata["evaluation"]["crop_pct"] == 1.0


def test_positions_are_resampled_in_time_and_space():
    small, large = read("vivit"), read("vivit", frames=8, image_size=(48, 32))
    table = keras.ops.convert_to_numpy(small.get_layer("encoder").position_embedding)
    found = keras.ops.convert_to_numpy(large.get_layer("encoder").position_embedding)
    np.testing.assert_array_equal(found[:, 0], table[:, 0])
    grid = table[0, 1:].reshape(2, 4, 4, 24)
    steps = np.einsum("st,trcw->srcw", resize_matrix(2, 4, "bilinear"), grid)
    wanted = np.einsum("ur,srcw->sucw", resize_matrix(4, 6, "bicubic"), steps)
    np.testing.assert_allclose(found[0, 1:], wanted.reshape(-1, 24), atol=1e-5)
    longer = read("videomae", frames=8)  # whose positions are just another table
    assert longer.get_layer("encoder").position_embedding.shape == (1, 64, 24)


def test_what_is_not_in_the_tensors_is_refused_or_read(tmp_path):
    def case(name, change=None, tensors=None):
        return lambda: from_checkpoint(written(name, tmp_path, change, tensors))

    def without(*names):
        return lambda arrays: {name: array for name, array in arrays.items() if not name.startswith(names)}

    assert not unexpected(
        [
            (case("vivit", {"model_type": None}), "needs its config.json: .*Received: model_type None"),
            (
                case("vivit", {"tubelet_size": [4, 8, 8]}),
                r"says tubelets of \[4, 8, 8\], and the weights have \[2, 8, 8\]",
            ),
            (case("videomae", {"patch_size": 16}), r"says tubelets of \[2, 16, 16\]"),
            (case("videomae", {"use_mean_pooling": False}), "says use_mean_pooling False, and the file has fc_norm"),
            (case("videomae", None, without("fc_norm")), "says use_mean_pooling True, and the file has no fc_norm"),
            (case("vivit", {"num_frames": 6}), "33 positions with 1 prefix tokens make no grid of"),
            (case("vivit", {"hidden_act": "relu"}), "`hidden_act` must be one of"),
            (
                case("vivit", None, without("vivit.encoder.layer.0.attention.attention.key")),
                "missing in the file: .*key",
            ),
            (
                lambda: read("vivit", tubelet=1),
                "has tubelets of 2 x 8 x 8 for a width of 24, and the model of 1 x 8 x 8",
            ),
            (lambda: read("vivit", patch_size=4), "has tubelets of 2 x 8 x 8"),
            (lambda: read("vivit", vocabulary=3), "no argument 'vocabulary'"),
            (
                lambda: load_weights(video_vit("Ti/8", image_size=32), FOLDER / "vivit" / "checkpoint.safetensors"),
                "does not match the model",
            ),
        ]
    )
    model = from_checkpoint(written("videomae", tmp_path, {"layer_norm_eps": 1e-3}))
    assert model.get_layer("block_0").epsilon == 1e-3 and model.get_layer("norm").epsilon == 1e-5
    first = {"use_mean_pooling": False}
    moved = lambda arrays: {n.replace("fc_norm", "videomae.layernorm"): a for n, a in arrays.items()}  # noqa: E731
    model = from_checkpoint(written("videomae", tmp_path, first, moved))
    assert model.get_layer("pool").pooling == "first" and model.get_layer("norm").epsilon == 1e-12
    assert from_checkpoint(written("videomae", tmp_path, None, without("fc_norm", "classifier"))).output_shape[1] == 24


def authors(arrays):
    """Returns a golden file of VideoMAE under its authors' names."""
    found = {}
    for name, array in arrays.items():
        name = name.removeprefix("videomae.").replace("embeddings.patch_embeddings.projection", "patch_embed.proj")
        for old, new in (
            ("encoder.layer.", "blocks."), ("layernorm_before", "norm1"), ("layernorm_after", "norm2"),
            ("attention.output.dense", "attn.proj"), ("intermediate.dense", "mlp.fc1"), ("output.dense", "mlp.fc2"),
            ("attention.attention.", "attn."), ("classifier.", "head."),
        ):  # fmt: skip
            name = name.replace(old, new)
        found[name] = array
    for i in range(2):
        parts = [found.pop(f"blocks.{i}.attn.{part}.weight") for part in ("query", "key", "value")]
        found[f"blocks.{i}.attn.qkv.weight"] = np.concatenate(parts)
    return found


def test_names_of_the_authors(tmp_path):
    path = written("videomae", tmp_path, dict.fromkeys(json.loads((FOLDER / "videomae" / "config.json").read_text())),
                   lambda arrays: {f"module.{name}": array for name, array in authors(arrays).items()})  # fmt: skip
    (tmp_path / "config.json").unlink(missing_ok=True)
    model = from_checkpoint(path, frames=4, image_size=32, num_heads=3)
    expected = np.load(FOLDER / "videomae" / "io.npz")["logits"]
    np.testing.assert_allclose(logits(model, "videomae"), expected, atol=1e-3)  # another epsilon
    with pytest.raises(ValueError, match="number of heads"):
        from_checkpoint(path, frames=4, image_size=32)
