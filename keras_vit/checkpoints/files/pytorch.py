"""Reads PyTorch's `.pth`, `.pt`, `.bin` and `.ckpt` files, through PyTorch."""

import contextlib
import pathlib
import pickle
from collections import OrderedDict

import numpy as np

from keras_vit.checkpoints.files.wrapped import FIRST, choice, preferred
from keras_vit.utils import extras

SUFFIXES = (".pth", ".pt", ".bin", ".ckpt", ".tar")
STATE_DICT = "where it was made, run torch.save(model.state_dict(), 'weights.pth'), and load that file"
# NumPy's numbers, such as a metric next to the weights.
SCALAR = np.float64(0).__reduce__()[0]
NUMBERS = {"numpy.dtype": np.dtype} | {f"numpy.{core}.multiarray.scalar": SCALAR for core in ("core", "_core")}
TYPES = [type(np.dtype(kind)) for kind in ("bool", "int32", "int64", "float16", "float32", "float64")]


class Inert:
    """What stands for an object that PyTorch does not create safely, such as the options of a training script."""

    def __new__(cls, *args, **kwargs):
        return OrderedDict()  # the only kind of object that may be filled


def check_pytorch(source):
    """Raises ImportError if a source needs PyTorch, by its name, and PyTorch is not installed."""
    suffix = pathlib.PurePath(str(source).partition("?")[0]).suffix
    if suffix in SUFFIXES:
        extras.need(f"Reading {str(source)!r}, which is no .safetensors file,", "torch", "torch")


@contextlib.contextmanager
def open_pytorch(path):
    """Opens a PyTorch file; see `read.open_checkpoint`. Yields shapes by name, a function that reads, and notes.

    Training scripts put state dicts into dictionaries. Of several, it takes the one with a Vision Transformer; of
    several of these, the averaged one, and says so.
    """
    check_pytorch(path)

    content = _load(path)
    dictionaries = _state_dicts(content)
    if not dictionaries:
        raise ValueError(f"it has no state dict: a whole model may be pickled in it. Then, {STATE_DICT}")
    models = {place: tensors for place, tensors in dictionaries.items() if any(map(FIRST.fullmatch, tensors))}
    place = preferred(list(models)) if models else max(dictionaries, key=lambda place: len(dictionaries[place]))
    tensors = {name: tensor.detach() for name, tensor in dictionaries[place].items()}
    for name, tensor in tensors.items():
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise ValueError(f"{name} claims the shape {tuple(tensor.shape)}, but its storage is smaller")

    def read(name):
        if not tensors[name].is_floating_point():
            raise ValueError(f"weights must be floats, and {name} contains {tensors[name].dtype}")
        return tensors[name].float().contiguous().numpy()

    notes = {"remarks": [choice(list(models), place)]} if len(models) > 1 else {}
    notes |= {"args": args} if (args := _settings(content)) else {}
    yield {name: tuple(tensor.shape) for name, tensor in tensors.items()}, read, notes


def _settings(content):
    """Returns the arguments of the training that a file keeps under `args`: a dictionary or a namespace."""
    args = content.get("args") if isinstance(content, dict) else None
    return dict(args) or dict(vars(args)) if isinstance(args, OrderedDict) else args if isinstance(args, dict) else {}


def _load(path):
    """Unpickles a file. Only tensors and plain data are created: what else it names becomes an empty dictionary."""
    import torch

    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except ValueError as error:  # the format before version 1.6, or a program
        if "torchscript" in str(error):
            raise ValueError(
                "it is a TorchScript program. Take out its weights first: "
                "torch.save(torch.jit.load(path).state_dict(), 'weights.pth'). CLIP is on Hugging Face too, such as "
                "'hf://openai/clip-vit-base-patch32'"
            ) from None
        names = []
    harmless = [(NUMBERS.get(name, Inert), name) for name in names]
    options = {"map_location": "cpu", "weights_only": True}
    try:
        with torch.serialization.safe_globals([*harmless, *TYPES]):
            try:
                return torch.load(path, mmap=True, **options)
            except RuntimeError:  # the older format cannot be mapped
                return torch.load(path, **options)
    except (pickle.UnpicklingError, TypeError) as error:
        [first, *_] = str(error).replace("\x1b[1m", "").splitlines() or [""]
        raise ValueError(f"it has objects that PyTorch does not read safely; {STATE_DICT} ({first[:100]})") from None


def _state_dicts(content):
    """Returns all dictionaries of tensors in nested ones, by their places."""
    import torch

    found, waiting, seen = {}, [("", content)], set()
    while waiting:
        place, node = waiting.pop()
        if not isinstance(node, dict) or id(node) in seen:  # a file may contain itself
            continue
        seen.add(id(node))
        tensors = {k: v for k, v in node.items() if isinstance(k, str) and isinstance(v, torch.Tensor)}
        found |= {place: tensors} if tensors else {}
        waiting += [(f"{place}.{key}".lstrip("."), value) for key, value in node.items()]
    return dict(sorted(found.items()))
