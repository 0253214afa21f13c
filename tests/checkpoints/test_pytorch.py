import importlib.util

import numpy as np
import pytest

from keras_vit.checkpoints.pytorch import check_pytorch
from tests.checkpoints.helpers import everything


def test_shards_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"a": torch.ones(2)}, tmp_path / "one.bin")
    torch.save({"b": torch.zeros(3)}, tmp_path / "two.bin")
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "one.bin", "b": "two.bin"}}')
    assert set(everything(tmp_path)) == {"a", "b"}


def test_pytorch_files(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensors = {"module.a": torch.ones(2, 3).bfloat16(), "b": torch.zeros(3)}
    for legacy in (False, True):
        torch.save({"model": tensors, "epoch": 3}, tmp_path / "file.pth", _use_new_zipfile_serialization=not legacy)
        found = everything(tmp_path / "file.pth")
        np.testing.assert_array_equal(found["a"], np.ones((2, 3)))

    torch.save({"teacher": {"module.backbone.a": torch.nn.Parameter(torch.ones(2))}}, tmp_path / "file.pth")
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
    with pytest.raises(ImportError, match="pip install torch"):
        everything(tmp_path / "file.pth")
    for source in ("https://host/file.pth?download=true", "pytorch_model.bin"):
        with pytest.raises(ImportError, match="pip install torch"):
            check_pytorch(source)
    check_pytorch("https://host/file.npz")
