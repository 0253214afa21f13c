"""Files of weights: names and shapes at once, arrays one by one."""

import contextlib
import importlib.util
import io
import json
import math
import pathlib
import re
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes  # noqa: F401  (by which NumPy knows bfloat16)
import numpy as np
import safetensors
from numpy.lib import format as npy

FLOATS = {"F64", "F32", "F16", "BF16"}
SUFFIXES = (".safetensors", ".npz", ".pth", ".pt", ".bin", ".keras")
RUN, TRAINED = "recipe.json", "model.keras"  # what a run's directory holds
# What training scripts put a state dict into, and the names they put before its names.
WRAPPERS = ("state_dict", "model", "model_ema", "state_dict_ema", "teacher")
PREFIXES = r"^(module\.|backbone\.)+"
MAX_INFLATION = 50  # a zip member may claim more than memory holds
MAX_HEADER = 2**16  # bytes of an array's header
MAX_JSON = 2**26  # bytes of a configuration


class Checkpoint(NamedTuple):
    """An open file of weights, or several that make one.

    `shapes` goes from names to shapes; `read` returns one array, float32; `config` and `processor` are what
    `config.json` and `preprocessor_config.json` beside it say, `{}` without them; `notes` is what `save_checkpoint`
    left in it.
    """

    path: pathlib.Path
    shapes: dict
    read: Callable
    config: dict
    processor: dict
    notes: dict

    def shape(self, place):
        """Returns the shape of a tensor, or of one block of a stacked one, `(name, index)`."""
        return self.shapes[place[0]][1:] if isinstance(place, tuple) else self.shapes[place]

    def array(self, place):
        """Reads a tensor, or one block of a stacked one, `(name, index)`."""
        return self.read(place[0])[place[1]] if isinstance(place, tuple) else self.read(place)


@contextlib.contextmanager
def open_checkpoint(path):
    """Opens a file of weights, or a directory with one, for reading.

    Nothing but names and shapes is read; no array is unpickled; sizes are checked against the file's own.

    Args:
        path: `.npz`, `.safetensors`, `.keras`, `.pth`, `.pt` or `.bin` (the last three through PyTorch), or a directory
            with one, or with shards and `model.safetensors.index.json`; or the directory of a run.

    Yields:
        A `Checkpoint`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or of another kind.
    """
    path = pathlib.Path(path)
    files = _files(path)
    folder = path if path.is_dir() else path.parent
    with contextlib.ExitStack() as stack:
        shapes, readers, notes = {}, {}, {}
        for file in files:
            with _sentence(file):
                opened = stack.enter_context(_OPENERS[file.suffix](file))
            notes |= opened[2]
            twice = sorted(set(opened[0]) & set(shapes))
            if twice:
                raise ValueError(f"{str(path)!r} holds {twice[0]!r} twice.")
            shapes |= opened[0]
            readers |= dict.fromkeys(opened[0], (file, opened[1]))

        def read(name):
            file, reader = readers[name]
            with _sentence(file):
                array = reader(name)
                if array.shape != shapes[name]:
                    raise ValueError(f"{name} has the shape {array.shape}, and its header says {shapes[name]}")
                return array

        beside = ("config.json", "preprocessor_config.json")
        alone = files[0].suffix in (".npz", ".keras")
        config, processor = ({} if alone else _json(folder / name) for name in beside)
        yield Checkpoint(path, shapes, read, config, processor, notes)


def check_readable(source):
    """Raises ImportError if a source's name tells that PyTorch reads it, and it is not there: before a download."""
    suffix = pathlib.PurePath(str(source).partition("?")[0]).suffix
    if _OPENERS.get(suffix) is _torch and importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"{str(source)!r} is read by PyTorch, which is not installed: pip install torch, "
            "or take a .safetensors file."
        )


def _files(path):
    """Returns the files that make up a checkpoint."""
    if not path.exists():
        raise FileNotFoundError(f"There is no checkpoint {str(path)!r}.")
    if not path.is_dir():
        if not path.is_file():
            raise ValueError(f"A checkpoint is a regular file or a directory. Received: {str(path)!r}")
        if path.suffix not in _OPENERS:
            raise ValueError(f"A checkpoint's name ends in one of {', '.join(SUFFIXES)}. Received: {str(path)!r}")
        return [path]
    if (path / RUN).is_file():
        if not (path / TRAINED).is_file():
            raise ValueError(f"The run in {str(path)!r} has not ended: it has no {TRAINED} yet. Name its best.keras.")
        return [path / TRAINED]
    for name in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        index = _json(path / name).get("weight_map")
        if not index:
            continue
        names = sorted(set(index.values())) if isinstance(index, dict) else [index]
        if not all(isinstance(name, str) and (path / name).is_file() and "/" not in name for name in names):
            raise ValueError(f"{str(path)!r} misses some of its shards: {names[:10]}")
        return [path / name for name in names]
    for suffix in SUFFIXES:
        found = sorted(file for file in path.iterdir() if file.suffix == suffix and file.is_file())
        found = [file for file in found if file.stem in ("model", "pytorch_model")] or found
        if len(found) == 1:
            return found
        if found:
            raise ValueError(f"{str(path)!r} holds several checkpoints: name one. Found: {[f.name for f in found]}")
    raise ValueError(f"{str(path)!r} holds no file that ends in one of {', '.join(SUFFIXES)}.")


@contextlib.contextmanager
def _npz(path):
    with zipfile.ZipFile(path) as archive:
        members, shapes, total = {}, {}, 0
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or name in members:
                raise ValueError(f"the member {member.filename!r} is no array, or there twice")
            with archive.open(member) as stream:
                shape, _, dtype, offset = _header(stream, name)
            if member.file_size != offset + math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} has {member.file_size} bytes, which its header {shape}, {dtype} contradicts")
            total += member.file_size
            members[name], shapes[name] = member, shape
        check_inflation(path, total)

        def read(name):
            with archive.open(members[name]) as stream:
                shape, order, dtype, _ = _header(stream, name)
                array = np.frombuffer(stream.read(), dtype).reshape(shape, order=order)
            return _float32(name, array.view("bfloat16") if dtype.kind == "V" else array)

        yield shapes, read, {}


def _header(stream, name):
    """Returns shape, order, type and the length of the header of an `.npy` file."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has the header of version {version}")
    size, reader = (2, npy.read_array_header_1_0) if version == (1, 0) else (4, npy.read_array_header_2_0)
    length = stream.read(size)
    if int.from_bytes(length, "little") > MAX_HEADER:  # before it takes any memory
        raise ValueError(f"{name} has a header of {int.from_bytes(length, 'little'):,} bytes")
    shape, fortran, dtype = reader(io.BytesIO(length + stream.read(int.from_bytes(length, "little"))))
    if dtype.hasobject:
        raise ValueError(f"{name} is pickled, which can run any program: it is not read")
    if any(side < 0 for side in shape) or not dtype.itemsize:
        raise ValueError(f"{name} has the shape {shape} and the type {dtype}")
    return shape, "F" if fortran else "C", dtype, stream.tell()


@contextlib.contextmanager
def _safetensors(path):
    with safetensors.safe_open(path, framework="np") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        shapes = {name: tuple(slice.get_shape()) for name, slice in slices.items()}
        types = {name: slice.get_dtype() for name, slice in slices.items()}
        note = (file.metadata() or {}).get("keras_vit")

    def read(name):
        if types[name] not in FLOATS:
            raise ValueError(f"{name} holds {types[name]}, and weights are floats")
        with safetensors.safe_open(path, framework="np") as file:  # mapped anew, so that read pages do not add up
            return _float32(name, file.get_tensor(name))

    notes = json.loads(note) if note else {}
    if not isinstance(notes, dict) or not isinstance(notes.get("arguments", {}), dict):
        raise ValueError("what `save_checkpoint` notes is a dictionary, and this is none")
    yield shapes, read, notes


@contextlib.contextmanager
def _torch(path):
    check_readable(path)
    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # the format before version 1.6, which cannot be mapped
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    for _ in WRAPPERS:  # not for ever: a file may contain itself
        tensors = next((tensors[w] for w in WRAPPERS if isinstance(tensors.get(w), dict)), tensors)
    tensors = {re.sub(PREFIXES, "", k): v.detach() for k, v in tensors.items() if isinstance(v, torch.Tensor)}
    for name, tensor in tensors.items():
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise ValueError(f"{name} claims the shape {tuple(tensor.shape)}, and holds less")

    def read(name):
        if not tensors[name].is_floating_point():
            raise ValueError(f"{name} holds {tensors[name].dtype}, and weights are floats")
        return tensors[name].float().contiguous().numpy()

    yield {name: tuple(tensor.shape) for name, tensor in tensors.items()}, read, {}


def _keras(path):
    from keras_vit.checkpoints import own

    if not zipfile.is_zipfile(path):
        raise ValueError("it is no Keras file")
    with zipfile.ZipFile(path) as archive:
        check_inflation(path, sum(member.file_size for member in archive.infolist()))
    return own.opened(path)


def check_inflation(path, size):
    """Raises ValueError if a zip archive claims to hold far more bytes than it has itself."""
    if size > 2**26 + MAX_INFLATION * path.stat().st_size:
        raise ValueError(f"it claims to hold {size:,} bytes")


_OPENERS = {".npz": _npz, ".safetensors": _safetensors, ".keras": _keras}
_OPENERS |= dict.fromkeys((".pth", ".pt", ".bin"), _torch)


def _float32(name, array):
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise ValueError(f"{name} holds {array.dtype}, and weights are floats")
    return array.astype("float32", copy=False)


def _json(path):
    if not path.is_file():
        return {}
    with _sentence(path):
        if path.stat().st_size > MAX_JSON:
            raise ValueError(f"it has {path.stat().st_size:,} bytes")
        content = json.loads(path.read_text())
        if not isinstance(content, dict):
            raise ValueError("it is no dictionary")
        return content


@contextlib.contextmanager
def _sentence(path):
    """Turns whatever a reader stumbles over in a damaged file into one sentence."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{str(path)!r} cannot be read: {(str(error) or repr(error)).splitlines()[0]}") from None
