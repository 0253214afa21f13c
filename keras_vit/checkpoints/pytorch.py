"""Reads PyTorch's `.pth`, `.pt` and `.bin` files, through PyTorch."""

import contextlib
import importlib.util
import pathlib
import re

SUFFIXES = (".pth", ".pt", ".bin")
# Training scripts put a state dict into one of these, and prefix its names.
WRAPPERS = ("state_dict", "model", "model_ema", "state_dict_ema", "teacher")
PREFIXES = r"^(module\.|backbone\.)+"


def check_pytorch(source):
    """Raises ImportError if a source needs PyTorch, by its name, and PyTorch is not installed."""
    suffix = pathlib.PurePath(str(source).partition("?")[0]).suffix
    if suffix in SUFFIXES and importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"Reading {str(source)!r} needs PyTorch, which is not installed. Install it: pip install torch; "
            "or use a .safetensors file."
        )


@contextlib.contextmanager
def open_pytorch(path):
    """Opens a PyTorch file; see `read.open_checkpoint`. Yields shapes by name, a function that reads, and no notes."""
    check_pytorch(path)
    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # the format before version 1.6 cannot be mapped
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    for _ in WRAPPERS:  # bounded: a file may contain itself
        tensors = next((tensors[w] for w in WRAPPERS if isinstance(tensors.get(w), dict)), tensors)
    tensors = {re.sub(PREFIXES, "", k): v.detach() for k, v in tensors.items() if isinstance(v, torch.Tensor)}
    for name, tensor in tensors.items():
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise ValueError(f"{name} claims the shape {tuple(tensor.shape)}, but its storage is smaller")

    def read(name):
        if not tensors[name].is_floating_point():
            raise ValueError(f"weights must be floats, and {name} contains {tensors[name].dtype}")
        return tensors[name].float().contiguous().numpy()

    yield {name: tuple(tensor.shape) for name, tensor in tensors.items()}, read, {}
