import argparse
import importlib.util
import pathlib

import numpy as np
import pytest

from keras_vit.checkpoints.files.pytorch import check_pytorch
from keras_vit.checkpoints.files.read import open_checkpoint
from tests.checkpoints.helpers import everything


def test_shards_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"a": torch.ones(2)}, tmp_path / "one.bin")
    torch.save({"b": torch.zeros(3)}, tmp_path / "two.bin")
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "one.bin", "b": "two.bin"}}')
    assert set(everything(tmp_path)) == {"a", "b"}


def test_pytorch_files(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensors = {"a": torch.ones(2, 3).bfloat16(), "b": torch.zeros(3)}
    for legacy in (False, True):
        torch.save({"model": tensors, "epoch": 3}, tmp_path / "file.pth", _use_new_zipfile_serialization=not legacy)
        found = everything(tmp_path / "file.pth")
        np.testing.assert_array_equal(found["a"], np.ones((2, 3)))

    torch.save({"teacher": {"a": torch.nn.Parameter(torch.ones(2))}}, tmp_path / "file.pth")
    assert list(everything(tmp_path / "file.pth")) == ["a"]
    torch.save({"model": {"state_dict": {"a": torch.ones(2)}}}, tmp_path / "file.pth")
    assert list(everything(tmp_path / "file.pth")) == ["a"]
    torch.save({"a": torch.zeros(1).expand(10**9)}, tmp_path / "file.pth")
    with pytest.raises(ValueError, match="its storage is smaller"):
        everything(tmp_path / "file.pth")
    torch.save({"a": torch.ones(2, dtype=torch.int8)}, tmp_path / "file.pth")
    with pytest.raises(ValueError, match="weights must be floats"):
        everything(tmp_path / "file.pth")

    class Evil:
        def __reduce__(self):
            return (print, ("ran",))

    torch.save({"a": Evil()}, tmp_path / "file.pth")
    with pytest.raises(ValueError, match="cannot be read"):
        everything(tmp_path / "file.pth")


def test_a_pytorch_file_that_contains_itself_is_read_to_an_end(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    endless = {"a": torch.ones(2)}
    endless["model"] = {"state_dict": endless}
    torch.save(endless, tmp_path / "file.pth")
    assert set(everything(tmp_path / "file.pth")) <= {"a"}
    for content in ([torch.ones(2)], {1: torch.ones(2)}, torch.ones(2)):
        torch.save(content, tmp_path / "file.pth")
        with pytest.raises(ValueError, match=r"file.pth' cannot be read"):
            everything(tmp_path / "file.pth")


def test_pytorch_files_without_pytorch(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "file.pth").write_bytes(b"")
    with pytest.raises(ImportError, match="pip install .keras-vision-transformers.torch"):
        everything(tmp_path / "file.pth")
    for source in ("https://host/file.pth?download=true", "pytorch_model.bin"):
        with pytest.raises(ImportError, match="pip install .keras-vision-transformers.torch"):
            check_pytorch(source)
    check_pytorch("https://host/file.npz")


def saved(path, content):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save(content, path)
    return path


def test_what_training_scripts_write(tmp_path):
    """Their wrappers, options and numbers: all but tensors and plain data becomes inert."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = {"patch_embed.proj.weight": torch.ones(2, 3), "norm.weight": torch.ones(2)}
    optimizer = {"state": {0: {"exp_avg": torch.zeros(2)}}, "param_groups": [{"lr": 0.1}]}
    for name, content in {
        "best.pth.tar": {"epoch": 1, "state_dict": state, "optimizer": optimizer},
        "epoch=1.ckpt": {"state_dict": {f"model.{k}": v for k, v in state.items()}, "hyper_parameters": {"lr": 0.1}},
        "namespace.pth": {"model": state, "args": argparse.Namespace(lr=0.1, path=pathlib.Path("a"))},
        "numbers.pth": {"state_dict": state, "best": np.float64(77), "loss": np.float32(1), "step": np.int64(3)},
        "names.pth": {"model_state_dict": state, "optimizer_state_dict": optimizer},
        "deepspeed.pt": {"module": {f"module.{k}": v for k, v in state.items()}, "global_steps": 3},
        "nested.pth": {"a": {"b": {"c": {f"_orig_mod.{k}": v for k, v in state.items()}}}, "fn": print},
        "averaged.pth": {f"module.{k}": v for k, v in state.items()} | {"n_averaged": torch.tensor(3)},
    }.items():
        found = everything(saved(tmp_path / name, content))
        assert set(found) == set(state), name


def test_the_averaged_state_dict_is_read_and_named(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    raw, mean = ({"patch_embed.proj.weight": torch.full((1,), value)} for value in (1.0, 2.0))
    for content, place in (
        ({"state_dict": raw, "state_dict_ema": mean}, "state_dict_ema"),
        ({"model": raw, "model_ema": {"module": mean, "decay": 0.9}}, "model_ema.module"),
        ({"student": raw, "teacher": {f"backbone.{k}": v for k, v in mean.items()}}, "teacher"),
        ({"state_dict": mean, "current_model_state": raw}, "state_dict"),
    ):
        with open_checkpoint(saved(tmp_path / "file.pth", content)) as checkpoint:
            assert checkpoint.read("patch_embed.proj.weight") == 2
            [remark] = checkpoint.remarks
        assert "file.pth" in remark and f"Those of {place} are loaded" in remark
    with pytest.raises(ValueError, match="of several models: best, last. Save those to load in a file alone"):
        everything(saved(tmp_path / "file.pth", {"best": raw, "last": mean}))


class Custom:
    def __setstate__(self, state):
        raise AssertionError("ran")

    def __getstate__(self):
        return [1]


def test_what_cannot_be_read_says_what_to_do(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "program.pt")
    with pytest.raises(ValueError, match=r"a TorchScript program. Take out its weights first: torch.save\(torch.jit.l"):
        everything(tmp_path / "program.pt")
    for content in (torch.nn.Linear(2, 2), {"a": torch.ones(2), "b": Custom()}):
        with pytest.raises(ValueError, match=r"where it was made, run torch.save\(model.state_dict\(\), 'weights.pth'"):
            everything(saved(tmp_path / "file.pth", content))
