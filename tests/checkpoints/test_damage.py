"""Damaged and wrong files: one clear error, and the model is untouched."""

import json
import re
from functools import partial

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, load_weights, vit
from tests.checkpoints.helpers import (
    GOLDEN,
    SMALL,
    arrays_of,
    assert_same_weights,
    file_of,
    heads_of,
    unexpected,
    weights,
    write,
)
from tests.marks import few

pytestmark = pytest.mark.backend

GOOGLE, TIMM, HUB = "google_vit", "timm_vit", "hf_vit"


def damaged(arrays, name, change):
    return {**arrays, name: change(arrays[name])}


WRONG = {
    "one missing": (lambda a: {k: v for k, v in a.items() if k != "norm.bias"}, "missing in the file: norm.bias"),
    "one surplus": (lambda a: {**a, "blocks.1.extra": np.zeros(3, "float32")}, "not in the model: blocks.1.extra"),
    "a shape": (lambda a: damaged(a, "norm.bias", lambda v: v[:-1]), r"norm.bias is \(23,\), not \(24,\)"),
    "transposed": (lambda a: damaged(a, "blocks.0.mlp.fc1.weight", lambda v: v.T), r"fc1.weight is \(24, 48\), not"),
    "NaN": (lambda a: damaged(a, "blocks.1.norm1.weight", lambda v: v * np.nan), "not finite in blocks.1.norm1.weight"),
    "infinity": (lambda a: damaged(a, "pos_embed", lambda v: v + np.inf), "not finite in pos_embed"),
    "integers": (lambda a: damaged(a, "norm.bias", lambda v: v.astype("int32")), "norm.bias contains I32"),
    "a block more": (
        lambda a: {**a, **{k.replace("blocks.1", "blocks.2"): v for k, v in a.items() if "blocks.1" in k}},
        r"not in the model: blocks.2.attn.proj.bias, .* \(12 in all\)",
    ),
    "another width": (lambda a: {k: np.zeros([2 * s for s in v.shape], "float32") for k, v in a.items()}, "is"),
    "no kernel": (lambda a: damaged(a, "patch_embed.proj.weight", lambda v: v.reshape(24, -1)), "4 axes"),
    "flat positions": (lambda a: damaged(a, "pos_embed", lambda v: v[0]), r"\(10, 24\)"),
}


def test_a_wrong_file_changes_nothing(tmp_path):
    model, arrays, calls = vit(**SMALL, block={"gelu": "exact"}), arrays_of(TIMM), []
    for kind, (change, pattern) in WRONG.items():
        path = write(tmp_path / f"{kind}.safetensors", change(arrays))
        calls.append((partial(load_weights, model, path), pattern))
    before = weights(model)
    assert not unexpected(calls)
    assert_same_weights(weights(model), before)


def test_another_architecture_changes_nothing():
    model = vit(**SMALL, pooling="map", block={"gelu": "exact"})
    before = weights(model)
    cases = [GOOGLE, HUB, "timm_deit3", "google_r_ti", "timm_vit_avg_reg_ls"]
    assert not unexpected((partial(load_weights, model, file_of(case)), "does not match the model") for case in cases)
    assert_same_weights(weights(model), before)


MUTATIONS = (
    lambda v: None,
    lambda v: v.T,
    lambda v: v.reshape(-1),
    lambda v: v[None],
    lambda v: v[..., None],
    lambda v: np.zeros((), "float32"),
    lambda v: v[:0] if v.ndim else v,
    lambda v: np.concatenate([v, v]) if v.ndim else v,
    lambda v: v * np.nan,
)


@few(3)
@pytest.mark.parametrize("case", [GOOGLE, TIMM, HUB, "timm_vit_avg_reg_ls", "google_r_ti", "hf_deit_teacher"])
def test_mutated_tensors_are_refused_with_one_line(case, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / file_of(case).name
    if case.startswith("hf"):
        (tmp_path / "config.json").write_text((GOLDEN / case / "config.json").read_text())
    block = r"(blocks\.|encoderblock_|layer\.)1\b"  # one block is enough
    original = {name: array for name, array in arrays_of(case).items() if not re.search(block, name)}
    messages = []
    for _ in range(25):
        arrays = dict(original)
        for _ in range(rng.integers(1, 4)):
            name = list(arrays)[rng.integers(len(arrays))]
            changed = MUTATIONS[rng.integers(len(MUTATIONS))](arrays.pop(name))
            if changed is not None:
                arrays[name if rng.random() < 0.8 else name + "x"] = np.array(changed, order="C")
        write(path, arrays) if path.suffix == ".npz" else safetensors.numpy.save_file(arrays, path)
        try:
            model = from_checkpoint(path, **heads_of(case))
        except ValueError as error:
            messages.append(str(error))
            continue
        assert all(np.isfinite(array).all() for array in weights(model).values())
    assert len(messages) > 15 and not any("\n" in message for message in messages)


def test_configurations_that_lie(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(HUB))
    good = json.loads((GOLDEN / HUB / "config.json").read_text())

    def load(config):
        (tmp_path / "config.json").write_text(json.dumps(good | config))
        from_checkpoint(tmp_path)

    assert not unexpected(
        (partial(load, config), pattern)
        for config, pattern in [
            (dict(num_attention_heads="three"), "num_heads='three'"),
            (dict(num_attention_heads=0), "num_heads=0"),
            (dict(layer_norm_eps=-1), "epsilon=-1"),
            (dict(image_size="big"), "image_size='big'"),
            (dict(image_size=[48, 48]), "10 positions with 1 prefix tokens make no grid of 6 x 6"),
            (dict(hidden_act=["gelu"]), "does not describe a model of huggingface"),
        ]
    )


def test_configurations_of_another_kind(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(TIMM))
    (tmp_path / "config.json").write_text(json.dumps({"model_args": [1], "architecture": 3}))
    with pytest.raises(ValueError, match="configuration of .* does not describe a model of timm"):
        from_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json' cannot be read"):
        from_checkpoint(tmp_path)


def giant(arrays):
    """A file whose first tensor claims a width that nothing else has."""
    return arrays | {"patch_embed.proj.weight": np.zeros((100_000, 1, 1, 1), "float32"),
                     "patch_embed.proj.bias": np.zeros(100_000, "float32")}  # fmt: skip


def deep(arrays):
    return arrays | {f"blocks.{i}.a": np.zeros(0, "float32") for i in range(2, 1002)}


def test_small_files_that_ask_for_much(tmp_path):
    for change, pattern in [(giant, "does not match the model"), (deep, "at most 1000 blocks")]:
        path = write(tmp_path / "file.safetensors", change(arrays_of(TIMM)))
        with pytest.raises(ValueError, match=pattern):
            from_checkpoint(path, num_heads=1)


def test_notes_that_are_damaged(tmp_path):
    calls = []
    for i, note in enumerate(["[1]", '"x"', '{"arguments": [1]}', "{"]):
        safetensors.numpy.save_file(arrays_of(TIMM), tmp_path / f"{i}.safetensors", {"keras_vit": note})
        calls.append((partial(from_checkpoint, tmp_path / f"{i}.safetensors"), f"{i}.safetensors' cannot be read"))
    assert not unexpected(calls)


def test_notes_say_only_what_tensors_do_not(tmp_path):
    note = {"arguments": {"num_heads": 3, "width": 7, "depth": 99, "variant": 1, "metadata": 2, "block.gelu": "relu"}}
    path = tmp_path / "file.safetensors"
    safetensors.numpy.save_file(arrays_of(TIMM), path, {"keras_vit": json.dumps(note)})
    with pytest.raises(ValueError, match="gelu='relu'"):
        from_checkpoint(path)
    assert from_checkpoint(path, block={"gelu": "exact"}).get_layer("encoder").width == 24


def test_means_that_are_not_numbers(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of(TIMM))
    model = vit(**SMALL, block={"gelu": "exact"})
    before = weights(model)
    for mean in [[0.5, "a", 0.5], [0.5, None, 0.5], float("nan")]:
        (tmp_path / "config.json").write_text(json.dumps({"pretrained_cfg": {"mean": mean}}))
        load, build = partial(load_weights, model, tmp_path), partial(from_checkpoint, tmp_path, num_heads=3)
        assert not unexpected([(load, "must be finite numbers"), (build, "must be finite numbers")])
    assert_same_weights(weights(model), before)


def test_weights_that_are_there_twice(tmp_path):
    arrays = arrays_of(HUB)
    arrays |= {name.replace("vit.", "deit."): array for name, array in arrays.items()}
    with pytest.raises(ValueError, match=r"Two tensors are the same weight: .*cls_token and .*cls_token"):
        from_checkpoint(write(tmp_path / "file.safetensors", arrays), num_heads=3)


def test_a_broken_configuration_beside_a_file_that_has_none(tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert from_checkpoint(write(tmp_path / "file.npz", arrays_of(GOOGLE)))


def test_names_with_line_breaks(tmp_path):
    path = write(tmp_path / "file.safetensors", arrays_of(TIMM) | {"a\nb": np.zeros(2, "float32")})
    with pytest.raises(ValueError, match="not in the model") as raised:
        from_checkpoint(path, num_heads=3)
    assert "\n" not in str(raised.value)
