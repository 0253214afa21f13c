import json
import os
import signal
from functools import partial

import numpy as np
import pytest
import safetensors

from keras_vit import ResNetStem, from_checkpoint, load_weights, save_checkpoint, vit
from tests.checkpoints.helpers import (
    CASES,
    SMALL,
    arrays_of,
    assert_same_weights,
    filled,
    io_of,
    logits,
    original,
    randomized,
    unexpected,
    weights,
)
from tests.marks import few

pytestmark = [
    pytest.mark.backend,
    pytest.mark.filterwarnings("ignore:The .* format does not record.*num_heads"),  # published for no width of 24
]

SMALL = {**SMALL, "image_size": (16, 24), "depth": 1}
EXACT = {"gelu": "exact"}
FORMATS = {"google": "google", "timm": "timm", "hf": "huggingface"}
WRITTEN_OTHERWISE = {
    "google_vit_gap_linen",  # with the published numbering
    "hf_dinov2_registers",  # the class token's position is added to it
    "hf_clip",  # without the text tower
    "hf_siglip",  # with the prefix of published files
}
SUFFIX = {"google": ".npz", "timm": ".safetensors", "huggingface": ".safetensors"}


@few(4)
@pytest.mark.parametrize("case", [case for case in CASES if case != "hf_ijepa"])  # no format has such a model
def test_load_save_load_is_bit_identical(case, tmp_path):
    form = FORMATS[case.split("_")[0]]
    model = original(case)
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    again = from_checkpoint(path)
    assert_same_weights(weights(again), weights(model))
    x, _ = io_of(case)
    np.testing.assert_array_equal(logits(again, x), logits(model, x))
    if case not in WRITTEN_OTHERWISE:
        arrays = arrays_of(case)
        with np.load(path) if form == "google" else safetensors.safe_open(path, "np") as file:
            written = {k: file[k] if form == "google" else file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
        assert_same_weights(written, arrays)


@pytest.mark.parametrize("form", ["timm", "huggingface"])
def test_a_directory_says_it_all(form, tmp_path):
    epsilon = 1e-6 if form == "timm" else 1e-7
    model = randomized(vit(**SMALL, block=EXACT, norm={"epsilon": epsilon}, mean=0.4, std=(0.1, 0.2, 0.3)))
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
        ("google", dict(tokens={"class_position": False})),
        ("timm", dict(tokens={"distilled": True}, block={"layer_scale": 0.1, "qk_norm": True, "gelu": "exact"})),
        ("timm", dict(tokens={"registers": 2, "class_token": True}, pooling="gap", final_norm="after", block=EXACT)),
        ("timm", dict(pooling="map", block={"qkv_bias": False, "gelu": "exact"})),
        ("timm", dict(tokens={"pre_norm": True}, norm={"epsilon": 1e-5}, block=EXACT, num_classes=0)),
        ("huggingface", dict(tokens={"distilled": True}, norm={"epsilon": 1e-12}, block=EXACT)),
        ("huggingface", dict(tokens={"registers": 1, "class_position": False}, norm={"epsilon": 1e-12}, block=EXACT)),
        ("huggingface", dict(num_classes=0, norm={"epsilon": 1e-12}, block=EXACT)),
    ],
)
def test_every_kind_of_model(form, options, tmp_path):
    model = randomized(vit(**{**SMALL, **options}))
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    heads = {} if form == "google" else {"num_heads": 3}
    again = from_checkpoint(path, grid=(2, 3), image_size=(16, 24), **heads)
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3))
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(model(images)), atol=1e-4, rtol=1e-5)


def test_fixed_positions_become_a_table(tmp_path):
    model = vit(**SMALL, pooling="gap", final_norm="after", position="sincos2d", block=EXACT)
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(24, 7)))
    again = from_checkpoint(save_checkpoint(model, tmp_path / "timm", format="timm"), position="learned")
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 24, 3))
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(model(images)), atol=1e-5)


def test_what_a_format_does_not_record_is_a_warning(tmp_path):
    expected = r"google format does not record a grid of \(2, 3\), block={'gelu': 'exact'}, norm={'epsilon': 1e-05}"
    with pytest.warns(UserWarning, match=expected):
        save_checkpoint(vit(**SMALL, block=EXACT, norm={"epsilon": 1e-5}), tmp_path / "file.npz", format="google")


def test_files_that_are_there_stay(tmp_path, monkeypatch):
    model, path = vit(**SMALL, block=EXACT), tmp_path / "file.safetensors"
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
    assert_same_weights(weights(load_weights(vit(**SMALL, block=EXACT), path)), weights(model))


def test_names_that_do_not_fit_the_format(tmp_path):
    model, calls = vit(**SMALL), []
    for form, name in [("google", "file.safetensors"), ("google", "file"), ("timm", "file.npz")]:
        calls.append((partial(save_checkpoint, model, tmp_path / name, format=form), name))
        calls.append((partial(save_checkpoint, model, tmp_path / name, format="keras"), "format='keras'"))
    assert not unexpected(calls)


def test_timm_rebuilds_it_from_the_configuration(tmp_path):
    # So400m/14's ratio of 4304 to 1152, in small
    model = vit(**{**SMALL, "width": 36, "mlp_dim": 134}, block=EXACT)
    save_checkpoint(model, tmp_path / "timm", format="timm")
    stated = json.loads((tmp_path / "timm" / "config.json").read_text())["model_args"]
    assert int(36 * stated["mlp_ratio"]) == 134 and stated["num_heads"] == 3


@pytest.mark.parametrize("size", [(48, 64), (24, 40), (8, 24)])  # 6 x 8 patches and a class token are 7 x 7
@pytest.mark.parametrize("form", ["google", "timm"])
@pytest.mark.filterwarnings("ignore:The google format does not record a grid")
def test_grids_that_look_like_squares(form, size, tmp_path):
    model = vit(**{**SMALL, "image_size": size}, block={"gelu": "tanh" if form == "google" else "exact"})
    path = save_checkpoint(model, tmp_path / f"file{SUFFIX[form]}", format=form)
    copy = type(model).from_config(model.get_config())
    assert_same_weights(weights(load_weights(copy, path)), weights(model))
    options = {} if form == "google" else {"num_heads": 3}
    assert_same_weights(weights(from_checkpoint(path, image_size=size, **options)), weights(model))


def test_a_grid_that_may_be_either_is_asked_for(tmp_path):
    model = vit(**{**SMALL, "image_size": (8, 32)}, tokens={"class_position": False})  # 1 x 4 patches, or 2 x 2
    with pytest.warns(UserWarning, match="a grid of"):
        path = save_checkpoint(model, tmp_path / "file.npz", format="google")
    copy = type(model).from_config(model.get_config())
    with pytest.raises(ValueError, match="both a square grid and one of 1 x 4"):
        load_weights(copy, path)
    assert_same_weights(weights(load_weights(copy, path, grid=(1, 4))), weights(model))


@pytest.mark.parametrize(
    "options",
    [
        dict(position="relative"),
        dict(block={"sub_norm": "mlp"}),
        dict(block={"norm_order": "res-post"}),
        dict(block={"parallel": True}),
        dict(norm={"rms_norm": True}),
        dict(block={"proj_bias": False}, tokens={"patch_norm": True}),
        dict(tokens={"block_positions": True}),
    ],
)
@pytest.mark.parametrize("format, suffix", [("google", ".npz"), ("huggingface", ""), ("timm", ".safetensors")])
def test_kinds_that_no_format_writes(options, format, suffix, tmp_path):
    with pytest.raises(ValueError, match="has no (model|name)"):
        save_checkpoint(filled(**options), tmp_path / f"out{suffix}", format=format)
    assert not [*tmp_path.iterdir()]


@pytest.mark.filterwarnings("ignore:The google format does not record a grid")
def test_hybrids_of_odd_sizes(tmp_path):
    stem = ResNetStem((1, 1), width=32, name="stem")
    model = vit(**{**SMALL, "image_size": (33, 50), "patch_size": 1, "stem": stem})
    with pytest.raises(ValueError, match="timm has no model with this stem"):
        save_checkpoint(model, tmp_path / "file.safetensors", format="timm")
    path = save_checkpoint(model, tmp_path / "file.npz", format="google")
    again = from_checkpoint(path, image_size=(33, 50))
    assert_same_weights(weights(again), weights(model))


def test_a_hybrid_keeps_its_stem_s_rules(tmp_path):
    model = vit("R+Ti/16", depth=1, image_size=64, num_classes=3, block=EXACT)
    with pytest.warns(UserWarning, match="does not record the stem's epsilon=1e-06, the stem's standardize='google'"):
        path = save_checkpoint(model, tmp_path / "file.safetensors", format="timm")
    assert from_checkpoint(path).get_layer("stem").standardize == "google"
    with pytest.warns(UserWarning, match="the stem's standardize='google'"):
        load_weights(vit("R+Ti/16", depth=1, image_size=64, num_classes=3, block=EXACT,
                         stem=ResNetStem((), epsilon=1e-5, standardize="timm")), path)  # fmt: skip


def test_names_of_directories(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = save_checkpoint(vit(**SMALL, block=EXACT), "~/vit_tiny.mine", format="timm")
    assert path == tmp_path / "vit_tiny.mine"
    modes = {file.name: file.stat().st_mode for file in path.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]


def test_what_is_written_is_compared(tmp_path, monkeypatch):
    def zeros(arrays, path, metadata):
        path.write_bytes(safetensors.numpy.save({k: 0 * v + 1 for k, v in arrays.items()}, metadata))

    monkeypatch.setattr("safetensors.numpy.save_file", zeros)
    with pytest.raises(OSError, match="the file differs from the model"):
        save_checkpoint(vit(**SMALL, block=EXACT), tmp_path / "file.safetensors", format="timm")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_goes_after_a_day(tmp_path, monkeypatch):
    def killed(arrays, path, metadata):
        (tmp_path / path.parent.name).with_suffix(".left").mkdir()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.numpy.save_file", killed)
        with pytest.raises(SystemExit):
            save_checkpoint(vit(**SMALL, block=EXACT), tmp_path / "a.safetensors", format="timm")
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    save_checkpoint(vit(**SMALL, block=EXACT), tmp_path / "a.safetensors", format="timm")
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_full_disk(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of this kind are POSIX's")
    model = vit(**SMALL, block=EXACT, norm={"epsilon": 1e-12})
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        for form, name in [("google", "a.npz"), ("timm", "a.safetensors"), ("huggingface", "new")]:
            with pytest.raises(OSError, match=f"{name}' could not be written.*too large"):
                save_checkpoint(model, tmp_path / name, format=form)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())
