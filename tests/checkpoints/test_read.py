import importlib.util
import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from keras_vit.checkpoints.read import check_readable, open_checkpoint
from tests.checkpoints.helpers import arrays_of, benchmark, file_of, write

ARRAYS = {"a/b": np.arange(6, dtype="float32").reshape(2, 3), "c": np.ones(1, "float16"), "d": np.zeros((0, 2), ">f8")}
HARMLESS = {"a": np.ones((2, 3), "float32")}


def everything(path):
    """Reads a whole checkpoint."""
    with open_checkpoint(path) as checkpoint:
        return {name: checkpoint.read(name) for name in checkpoint.shapes}


@pytest.mark.parametrize("name", ["file.npz", "file.safetensors"])
def test_reads_what_was_written(name, tmp_path):
    arrays = {k: v.astype(v.dtype.newbyteorder("=")) for k, v in ARRAYS.items()} if "safe" in name else ARRAYS
    path = write(tmp_path / name, arrays)
    with open_checkpoint(path) as checkpoint:
        assert checkpoint.shapes == {k: v.shape for k, v in ARRAYS.items()}
        for key, array in ARRAYS.items():
            found = checkpoint.read(key)
            assert found.dtype == "float32"
            np.testing.assert_array_equal(found, array)


def test_reads_other_orders_and_compression(tmp_path):
    array = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4)))
    np.savez_compressed(tmp_path / "file.npz", a=array)
    np.testing.assert_allclose(everything(tmp_path / "file.npz")["a"], array, rtol=1e-6)


def test_reads_bfloat16_stored_as_void(tmp_path):
    half = np.array([1.5, -2.0, 0.1], "float32").view("uint32") >> 16
    np.savez(tmp_path / "file.npz", a=half.astype("uint16").view("V2"))
    np.testing.assert_allclose(everything(tmp_path / "file.npz")["a"], [1.5, -2.0, 0.1], rtol=1e-2)


def test_reads_bfloat16_of_safetensors(tmp_path):
    header = json.dumps({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    content = struct.pack("<Q", len(header)) + header + np.array([0x3FC0, 0xC000], "uint16").tobytes()
    (tmp_path / "file.safetensors").write_bytes(content)
    np.testing.assert_array_equal(everything(tmp_path / "file.safetensors")["a"], [1.5, -2.0])


def test_a_directory_with_its_configuration(tmp_path):
    write(tmp_path / "model.safetensors", HARMLESS)
    write(tmp_path / "model.fp16.safetensors", HARMLESS)
    (tmp_path / "config.json").write_text('{"hidden_size": 3}')
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.config == {"hidden_size": 3} and checkpoint.processor == {}
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"config.json.*no dictionary"), open_checkpoint(tmp_path):
        pass


def test_shards(tmp_path):
    write(tmp_path / "one.safetensors", {"a": np.ones(2, "float32")})
    write(tmp_path / "two.safetensors", {"b": np.zeros(3, "float32")})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert {k: v.shape for k, v in everything(tmp_path).items()} == {"a": (2,), "b": (3,)}
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ValueError, match="misses some of its shards"):
        everything(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../one.safetensors"}}))
    with pytest.raises(ValueError, match="misses some of its shards"):
        everything(tmp_path)


def test_shards_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"a": torch.ones(2)}, tmp_path / "one.bin")
    torch.save({"b": torch.zeros(3)}, tmp_path / "two.bin")
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "one.bin", "b": "two.bin"}}')
    assert set(everything(tmp_path)) == {"a", "b"}


def test_directories_that_name_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="holds no file"):
        everything(tmp_path)
    write(tmp_path / "one.npz", HARMLESS)
    write(tmp_path / "two.npz", HARMLESS)
    with pytest.raises(ValueError, match=r"several.*one.npz"):
        everything(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        everything(tmp_path / "none")
    (tmp_path / "model.onnx").write_text("")
    with pytest.raises(ValueError, match=r"ends in one of .safetensors"):
        everything(tmp_path / "model.onnx")
    (tmp_path / "model.keras").write_text("")
    with pytest.raises(ValueError, match=r"model.keras' cannot be read: it is no Keras file"):
        everything(tmp_path / "model.keras")


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
    with pytest.raises(ValueError, match="holds less"):
        everything(tmp_path / "file.pth")
    torch.save({"a": torch.ones(2, dtype=torch.int8)}, tmp_path / "file.pth")
    with pytest.raises(ValueError, match="weights are floats"):
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
            check_readable(source)
    check_readable("https://host/file.npz")


def npz(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(header, body=b"", version=b"\x01\x00"):
    text = (header + " " * (63 - len(header) % 64)).encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body


LIES = {
    "pickled": (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"), "pickled"),
    "shape": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }", b"1234"), "contradicts"),
    "huge": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "contradicts"),
    "negative": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }", b"1234"), r"shape \(-1, -1\)"),
    "version": (npy("{}", version=b"\x03\x00"), "version"),
    "no header": (b"hello", "cannot be read"),
    "text": (npy("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", b"12345678"), "weights are floats"),
    "nothing": (npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000,), }"), "type"),
    "void": (npy("{'descr': '|V3', 'fortran_order': False, 'shape': (1,), }", b"123"), "cannot be read"),
}


def test_a_long_header_is_not_read(tmp_path):
    size = 200_000_000
    with zipfile.ZipFile(tmp_path / "file.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as to:
        to.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", size))
        for _ in range(size // 10**7):
            to.write(b" " * 10**7)
    tracemalloc.start()
    with pytest.raises(ValueError, match="a has a header of 200,000,000 bytes"):
        everything(tmp_path / "file.npz")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "file.safetensors")
    for path in (tmp_path / "file.safetensors", "/dev/zero"):
        with pytest.raises(ValueError, match="regular file or a directory"):
            everything(path)


def test_keras_files_that_lie(tmp_path):
    with zipfile.ZipFile(tmp_path / "file.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * 200_000_000)
    with pytest.raises(ValueError, match="claims to hold 200,000,000 bytes"):
        everything(tmp_path / "file.keras")
    npz(tmp_path / "file.keras", {"config.json": b"{}"})
    with pytest.raises(ValueError, match=r"file.keras' cannot be read"):
        everything(tmp_path / "file.keras")


def test_a_configuration_of_many_bytes_is_not_read(tmp_path):
    write(tmp_path / "model.safetensors", HARMLESS)
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(2**27)  # takes no room
    with pytest.raises(ValueError, match=r"config.json' cannot be read: it has 134,217,728 bytes"):
        everything(tmp_path)


@pytest.mark.parametrize("kind", LIES)
def test_headers_that_lie(kind, tmp_path):
    content, said = LIES[kind]
    with pytest.raises(ValueError, match=said):
        everything(npz(tmp_path / "file.npz", {"a.npy": content}))


def test_archives_that_lie(tmp_path):
    good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", b"1234")
    with pytest.raises(ValueError, match="no array"):
        everything(npz(tmp_path / "file.npz", {"a.txt": good}))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (30000000,), }", bytes(120_000_000))
        )
    with pytest.raises(ValueError, match="claims to hold 120,000,"):
        everything(tmp_path / "bomb.npz")


def tensor(dtype, shape, *offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HEADERS = {
    "offsets": {"a": tensor("F32", [2], 0, 800)},
    "overlap": {"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 0, 4)},
    "shape": {"a": tensor("F32", [2**62, 2**62], 0, 8)},
    "type": {"a": tensor("PICKLE", [2], 0, 8)},
    "integers": {"a": tensor("I64", [1], 0, 8)},
}


@pytest.mark.parametrize("kind", HEADERS)
def test_safetensors_headers_that_lie(kind, tmp_path):
    header = json.dumps(HEADERS[kind]).encode()
    (tmp_path / "file.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(ValueError, match="cannot be read"):
        everything(tmp_path / "file.safetensors")


@pytest.mark.parametrize("case", ["google_vit", "timm_vit"])
def test_truncated_files(case, tmp_path):
    content = file_of(case).read_bytes()
    path = tmp_path / file_of(case).name
    for length in range(0, len(content), len(content) // 40):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="cannot be read"):
            everything(path)


@pytest.mark.parametrize("case", ["google_vit", "timm_vit"])
def test_mutated_files_are_read_or_refused(case, tmp_path):
    """Whatever bytes are changed, the reader gives arrays of the shapes that it named, or one ValueError."""
    small = {k: v[..., :2] for k, v in list(arrays_of(case).items())[:6]}
    content = write(tmp_path / file_of(case).name, small).read_bytes()
    outcomes = benchmark("fuzz_readers").outcomes(content, tmp_path / file_of(case).name, rounds=150, seed=0)
    assert sum(outcomes.values()) == 150 and outcomes["refused"] > 30
