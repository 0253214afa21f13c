import json
import os
import signal

import numpy as np
import pytest
import safetensors

from keras_vit import ResNetStem, from_checkpoint, load_weights, save_checkpoint, vit
from tests.checkpoints.helpers import (
    CASES,
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    heads_of,
    io_of,
    logits,
    weights,
)

pytestmark = [
    pytest.mark.backend,
    pytest.mark.filterwarnings("ignore:The .* format keeps no record of.*num_heads"),  # published for no width of 24
]

SMALL = {**SMALL, "image_size": (16, 24)}
FORMATS = {"google": "google", "timm": "timm", "hf": "huggingface"}
SUFFIX = {"google": ".npz", "timm": ".safetensors", "huggingface": ".safetensors"}


@pytest.mark.parametrize("case", CASES)
def test_load_save_load_is_bit_identical(case, tmp_path):
    form = FORMATS[case.split("_")[0]]
    model = from_checkpoint(file_of(case), **heads_of(case))
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    again = from_checkpoint(path)
    assert_same_weights(weights(again), weights(model))
    x, _ = io_of(case)
    np.testing.assert_array_equal(logits(again, x), logits(model, x))
    if case != "google_vit_gap_linen":  # written with the published numbering
        original = arrays_of(case)
        with np.load(path) if form == "google" else safetensors.safe_open(path, "np") as file:
            written = {k: file[k] if form == "google" else file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
        assert_same_weights(written, original)


@pytest.mark.parametrize("form", ["timm", "huggingface"])
def test_a_directory_says_it_all(form, tmp_path):
    model = vit(**SMALL, gelu="exact", epsilon=1e-6 if form == "timm" else 1e-7, mean=0.4, std=(0.1, 0.2, 0.3))
    for variable in model.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    save_checkpoint(model, tmp_path / "out", format=form)
    files = {"model.safetensors", "config.json"} | ({"preprocessor_config.json"} if form == "huggingface" else set())
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    with safetensors.safe_open(tmp_path / "out" / "model.safetensors", "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    safetensors.numpy.save_file(arrays, tmp_path / "out" / "model.safetensors")  # without our own notes
    again = from_checkpoint(tmp_path / "out")
    assert again.input_shape == (None, 16, 24, 3)
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3))
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(model(images)), atol=1e-5)


@pytest.mark.parametrize(
    "form, options",
    [
        ("google", dict(pooling="gap", position="sincos2d", representation_size=8)),
        ("google", dict(pooling="map")),
        ("google", dict(class_position=False)),
        ("timm", dict(distilled=True, layer_scale=0.1, qk_norm=True, gelu="exact")),
        ("timm", dict(registers=2, pooling="gap", final_norm="after", class_token=True, gelu="exact")),
        ("timm", dict(pooling="map", qkv_bias=False, gelu="exact")),
        ("timm", dict(pre_norm=True, epsilon=1e-5, gelu="exact", num_classes=0)),
        ("huggingface", dict(distilled=True, epsilon=1e-12, gelu="exact")),
        ("huggingface", dict(registers=1, class_position=False, epsilon=1e-12, gelu="exact")),
        ("huggingface", dict(num_classes=0, epsilon=1e-12, gelu="exact")),
    ],
)
def test_every_kind_of_model(form, options, tmp_path):
    model = vit(**{**SMALL, **options})
    for variable in model.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    heads = {} if form == "google" else {"num_heads": 3}
    again = from_checkpoint(path, grid=(2, 3), image_size=(16, 24), **heads)
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3))
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(model(images)), atol=1e-4, rtol=1e-5)


def test_fixed_positions_become_a_table(tmp_path):
    model = vit(**SMALL, pooling="gap", final_norm="after", position="sincos2d", gelu="exact")
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(24, 7)))
    again = from_checkpoint(save_checkpoint(model, tmp_path / "timm", format="timm"), position="learned")
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3))
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(model(images)), atol=1e-5)


def test_what_a_format_cannot_tell_is_told(tmp_path):
    said = r"google format keeps no record of a grid of \(2, 3\), epsilon=1e-05, gelu='exact'"
    with pytest.warns(UserWarning, match=said):
        save_checkpoint(vit(**SMALL, gelu="exact", epsilon=1e-5), tmp_path / "file.npz", format="google")


@pytest.mark.parametrize(
    "form, options, said",
    [
        ("google", dict(layer_scale=0.1), "no name for block_0/scale1/gamma"),
        ("google", dict(registers=2), "no name for encoder/register_tokens"),
        ("google", dict(swiglu=True), "no model with swiglu=True"),
        ("google", dict(pooling="gap", final_norm="after"), "no model with final_norm='after'"),
        ("google", dict(position=None), "no model with position=None"),
        ("timm", dict(representation_size=8), "no name for pre_logits"),
        ("timm", dict(pooling="last"), "no model with pooling='last'"),
        ("timm", dict(pooling="map", swiglu=True), "no model with attention pooling and gated MLPs"),
        ("timm", dict(distilled=True, registers=1), "no model distilled with registers"),
        ("huggingface", dict(layer_scale=0.1), "no name for block_0/scale1/gamma"),
        ("huggingface", dict(pooling="gap"), "a class token and a table of positions"),
        ("huggingface", dict(swiglu=True), "no model with swiglu=True"),
        ("huggingface", dict(registers=2), "no model with registers=2"),
    ],
)
def test_models_that_a_format_has_not(form, options, said, tmp_path):
    path = tmp_path / f"file{SUFFIX[form]}"
    path.write_bytes(b"before")
    with pytest.raises(ValueError, match=said):
        save_checkpoint(vit(**{**SMALL, "epsilon": 1e-6, **options}), path, format=form, overwrite=True)
    assert path.read_bytes() == b"before" and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_files_that_are_there_stay(tmp_path, monkeypatch):
    model, path = vit(**SMALL, gelu="exact"), tmp_path / "file.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save_checkpoint(model, path, format="timm")

    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(model, path, format="timm", overwrite=True)
    assert path.read_bytes() == b"before" and [p.name for p in tmp_path.iterdir()] == [path.name]
    monkeypatch.undo()
    save_checkpoint(model, path, format="timm", overwrite=True)
    assert_same_weights(weights(load_weights(vit(**SMALL, gelu="exact"), path)), weights(model))


@pytest.mark.parametrize("form, name", [("google", "file.safetensors"), ("google", "file"), ("timm", "file.npz")])
def test_names_that_do_not_fit_the_format(form, name, tmp_path):
    with pytest.raises(ValueError, match=name):
        save_checkpoint(vit(**SMALL), tmp_path / name, format=form)
    with pytest.raises(ValueError, match="format='keras'"):
        save_checkpoint(vit(**SMALL), tmp_path / name, format="keras")


def test_timm_rebuilds_it_from_the_configuration(tmp_path):
    model = vit("So400m/14", image_size=28, depth=1, num_classes=3, gelu="exact")
    save_checkpoint(model, tmp_path / "timm", format="timm")
    said = json.loads((tmp_path / "timm" / "config.json").read_text())["model_args"]
    assert int(1152 * said["mlp_ratio"]) == 4304 and said["num_heads"] == 16


@pytest.mark.parametrize("size", [(48, 64), (24, 40), (8, 24)])  # 6 x 8 patches and a class token are 7 x 7
@pytest.mark.parametrize("form", ["google", "timm"])
@pytest.mark.filterwarnings("ignore:The google format keeps no record of a grid")
def test_grids_that_look_like_squares(form, size, tmp_path):
    model = vit(**{**SMALL, "image_size": size}, gelu="tanh" if form == "google" else "exact")
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    twin = type(model).from_config(model.get_config())
    assert_same_weights(weights(load_weights(twin, path)), weights(model))
    options = {} if form == "google" else {"num_heads": 3}
    assert_same_weights(weights(from_checkpoint(path, image_size=size, **options)), weights(model))


def test_a_grid_that_may_be_either_is_asked_for(tmp_path):
    model = vit(**{**SMALL, "image_size": (8, 32)}, class_position=False)  # 1 x 4 patches, or 2 x 2
    with pytest.warns(UserWarning, match="a grid of"):
        path = save_checkpoint(model, tmp_path / "file.npz", format="google")
    twin = type(model).from_config(model.get_config())
    with pytest.raises(ValueError, match="a square grid as well as one of 1 x 4"):
        load_weights(twin, path)
    assert_same_weights(weights(load_weights(twin, path, grid=(1, 4))), weights(model))


@pytest.mark.parametrize("form", ["google", "timm"])
@pytest.mark.filterwarnings("ignore:The google format keeps no record of a grid")
def test_hybrids_of_odd_sizes(form, tmp_path):
    stem = ResNetStem((1, 1), width=32, name="stem")
    options = {**SMALL, "image_size": (33, 50), "patch_size": 1, "stem": stem}
    model = vit(**options)
    if form == "timm":
        with pytest.raises(ValueError, match="timm has no model with this stem"):
            save_checkpoint(model, tmp_path / "file.safetensors", format=form)
        return
    path = save_checkpoint(model, tmp_path / "file.npz", format=form)
    again = from_checkpoint(path, image_size=(33, 50))
    assert_same_weights(weights(again), weights(model))


def test_a_hybrid_keeps_its_stem_s_rules(tmp_path):
    model = vit("R+Ti/16", depth=1, image_size=64, num_classes=3, gelu="exact")
    with pytest.warns(UserWarning, match="no record of the stem's epsilon=1e-06, the stem's standardize='google'"):
        path = save_checkpoint(model, tmp_path / "file.safetensors", format="timm")
    assert from_checkpoint(path).get_layer("stem").standardize == "google"
    with pytest.warns(UserWarning, match="the stem's standardize='google'"):
        load_weights(vit("R+Ti/16", depth=1, image_size=64, num_classes=3, gelu="exact",
                         stem=ResNetStem((), epsilon=1e-5, standardize="timm")), path)  # fmt: skip


def test_names_of_directories(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = save_checkpoint(vit(**SMALL, gelu="exact"), "~/vit_tiny.mine", format="timm")
    assert path == tmp_path / "vit_tiny.mine"
    modes = {file.name: file.stat().st_mode for file in path.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]


def test_what_is_written_is_compared(tmp_path, monkeypatch):
    def zeros(arrays, path, metadata):
        path.write_bytes(safetensors.numpy.save({k: 0 * v + 1 for k, v in arrays.items()}, metadata))

    monkeypatch.setattr("safetensors.numpy.save_file", zeros)
    with pytest.raises(OSError, match="not what was to be written"):
        save_checkpoint(vit(**SMALL, gelu="exact"), tmp_path / "file.safetensors", format="timm")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_goes_after_a_day(tmp_path, monkeypatch):
    def killed(arrays, path, metadata):
        (tmp_path / path.parent.name).with_suffix(".left").mkdir()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.numpy.save_file", killed)
        with pytest.raises(SystemExit):
            save_checkpoint(vit(**SMALL, gelu="exact"), tmp_path / "a.safetensors", format="timm")
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    save_checkpoint(vit(**SMALL, gelu="exact"), tmp_path / "a.safetensors", format="timm")
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("form, name", [("google", "a.npz"), ("timm", "a.safetensors"), ("huggingface", "new")])
def test_a_full_disk(form, name, tmp_path):
    resource = pytest.importorskip("resource", reason="limits of this kind are POSIX's")
    path = tmp_path / name
    model = vit(**SMALL, gelu="exact", epsilon=1e-12)
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"{name}' could not be written.*too large"):
            save_checkpoint(model, path, format=form)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())
