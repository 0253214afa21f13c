import json
import os
import struct
import zipfile
from functools import partial

import numpy as np
import pytest
import safetensors.numpy

from keras_vit.checkpoints.files.read import open_checkpoint
from tests.checkpoints.helpers import arrays_of, benchmark, everything, file_of, unexpected, write

ARRAYS = {"a/b": np.arange(6, dtype="float32").reshape(2, 3), "c": np.ones(1, "float16"), "d": np.zeros((0, 2), ">f8")}
HARMLESS = {"a": np.ones((2, 3), "float32")}


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
    with pytest.raises(ValueError, match=r"config.json.*not a dictionary"), open_checkpoint(tmp_path):
        pass


def test_shards(tmp_path):
    write(tmp_path / "one.safetensors", {"a": np.ones(2, "float32")})
    write(tmp_path / "two.safetensors", {"b": np.zeros(3, "float32")})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert {k: v.shape for k, v in everything(tmp_path).items()} == {"a": (2,), "b": (3,)}
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ValueError, match="lacks some of its shards"):
        everything(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../one.safetensors"}}))
    with pytest.raises(ValueError, match="lacks some of its shards"):
        everything(tmp_path)


def test_directories_that_name_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="contains no file"):
        everything(tmp_path)
    write(tmp_path / "one.npz", HARMLESS)
    write(tmp_path / "two.npz", HARMLESS)
    with pytest.raises(ValueError, match=r"several.*one.npz"):
        everything(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        everything(tmp_path / "none")
    (tmp_path / "model.onnx").write_text("")
    with pytest.raises(ValueError, match=r"must end in one of .safetensors"):
        everything(tmp_path / "model.onnx")
    (tmp_path / "model.keras").write_text("")
    with pytest.raises(ValueError, match=r"model.keras' cannot be read: it is not a Keras file"):
        everything(tmp_path / "model.keras")


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "file.safetensors")
    for path in (tmp_path / "file.safetensors", "/dev/zero"):
        with pytest.raises(ValueError, match="regular file or a directory"):
            everything(path)


def test_keras_files_that_lie(tmp_path):
    with zipfile.ZipFile(tmp_path / "file.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * 200_000_000)
    with pytest.raises(ValueError, match="claims to contain 200,000,000 bytes"):
        everything(tmp_path / "file.keras")
    with zipfile.ZipFile(tmp_path / "file.keras", "w") as archive:
        archive.writestr("config.json", b"{}")
    with pytest.raises(ValueError, match=r"file.keras' cannot be read"):
        everything(tmp_path / "file.keras")


def test_a_configuration_of_many_bytes_is_not_read(tmp_path):
    write(tmp_path / "model.safetensors", HARMLESS)
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(2**27)  # takes no room
    with pytest.raises(ValueError, match=r"config.json' cannot be read: it has 134,217,728 bytes"):
        everything(tmp_path)


def tensor(dtype, shape, *offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HEADERS = {
    "offsets": {"a": tensor("F32", [2], 0, 800)},
    "overlap": {"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 0, 4)},
    "shape": {"a": tensor("F32", [2**62, 2**62], 0, 8)},
    "type": {"a": tensor("PICKLE", [2], 0, 8)},
    "integers": {"a": tensor("I64", [1], 0, 8)},
}


def test_safetensors_headers_that_lie(tmp_path):
    calls = []
    for kind, header in HEADERS.items():
        header, path = json.dumps(header).encode(), tmp_path / f"{kind}.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        calls.append((partial(everything, path), f"{kind}.safetensors' cannot be read"))
    assert not unexpected(calls)


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


def test_a_whole_file_comes_before_an_index_as_in_transformers(tmp_path):
    write(tmp_path / "one.safetensors", {"a": np.ones(2, "float32")})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    write(tmp_path / "model.safetensors", {"b": np.zeros(3, "float32")})
    assert {k: v.shape for k, v in everything(tmp_path).items()} == {"b": (3,)}


def test_files_of_keras_hub_are_named(tmp_path):
    (tmp_path / "metadata.json").write_text('{"keras_hub_version": "0.32"}')
    (tmp_path / "model.weights.h5").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "task.keras", "w") as archive:
        archive.writestr("config.json", json.dumps({"module": "keras_hub.src.models", "class_name": "ViT"}))
    for path in (tmp_path, tmp_path / "task.keras"):
        with pytest.raises(ValueError, match="model of KerasHub.*Load it with keras_hub, or load its source here"):
            everything(path)


def test_other_names_of_a_tensor_that_is_written_once(tmp_path):
    """As safetensors writes what PyTorch shares."""
    stored = {"a": np.ones((2, 3), "float32")}
    safetensors.numpy.save_file(stored, tmp_path / "m.safetensors", {"format": "pt", "b": "a", "c": "none"})
    with open_checkpoint(tmp_path / "m.safetensors") as checkpoint:
        assert checkpoint.shapes == {"a": (2, 3), "b": (2, 3)}
        np.testing.assert_array_equal(checkpoint.read("b"), stored["a"])
