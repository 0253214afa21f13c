"""Opens a checkpoint: names and shapes first, arrays one by one."""

import contextlib
import functools
import json
import pathlib
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import safetensors

from keras_vit.checkpoints.files import keras_hub, pytorch
from keras_vit.checkpoints.files.npz import as_float32, check_inflation, open_npz
from keras_vit.checkpoints.files.repository import RUN, TRAINED, trained_at
from keras_vit.checkpoints.files.settings import one_error, read_json
from keras_vit.checkpoints.files.tensorflow_h5 import open_h5
from keras_vit.checkpoints.files.wrapped import (
    AUTOENCODER,
    FIRST_OF_TEXT,
    GENERATION,
    JOINING,
    OPEN_CLIP,
    PAIR,
    joining,
    of_open_clip,
    other_decoder,
    unwrap,
    unwrap_text,
    writes,
)
from keras_vit.utils.files import regular

FLOATS = {"F64", "F32", "F16", "BF16"}
SUFFIXES = (".safetensors", ".npz", *pytorch.SUFFIXES, ".keras", ".h5")
CONFIGS = ("config.json", "preprocessor_config.json", "processor_config.json")
FIRST = {"text": FIRST_OF_TEXT, **JOINING, **AUTOENCODER}  # where other parts begin
WHOLE = ("model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.bin")


class Checkpoint(NamedTuple):
    """An open checkpoint: one file of weights, or several shards.

    `shapes` maps names to shapes. `read(name)` returns one array, float32. `config` and `processor` are the contents of
    `config.json` and `preprocessor_config.json` next to the file, `{}` without them; `processor` is that of
    `processor_config.json` if it has a part for images. `notes` is what `save_checkpoint` wrote into the file. Of a
    Vision Transformer inside something else, only its part is here; `passed_over` counts the other tensors, and
    `remarks` are sentences for the user. `writes` says whether the file has a decoder that writes about images. Opened
    for its text tower or decoder, a file has all its tensors here, and `config` has the entries of
    `open_clip_config.json` too, and those of `generation_config.json` under that name.
    """

    path: pathlib.Path
    shapes: dict
    read: Callable
    config: dict
    processor: dict
    notes: dict
    passed_over: int = 0
    remarks: tuple = ()
    writes: bool = False

    def shape(self, place):
        """Returns the shape of a tensor, or of one block of a stacked one: `(name, index)` or `(name, index, axis)`."""
        name, *block = place if isinstance(place, tuple) else (place,)
        shape, axis = self.shapes[name], (block[1:] or [0])[0]
        return shape[:axis] + shape[axis + 1 :] if block else shape

    def kind(self):
        """Returns a sentence with the kind of model that the settings name, for errors; empty if they name none."""
        named = [self.config.get(name) for name in ("model_type", "architecture")]  # transformers' and timm's
        named += (self.config.get("architectures") or ())[:1]
        named = [repr(name) for name in named if isinstance(name, str) and name]
        return f" Its config.json says {', '.join(named)}." if named else ""

    def array(self, place):
        """Reads a tensor, or one block of a stacked one; see `shape`."""
        name, *block = place if isinstance(place, tuple) else (place,)
        return np.take(self.read(name), block[0], *block[1:] or [0]) if block else self.read(name)


class Files(NamedTuple):
    """Open files of weights, whole; `part` returns the `Checkpoint` of a part."""

    path: pathlib.Path
    suffix: str
    folder: pathlib.Path | None  # of the configurations; `None` where the file says all itself
    shapes: dict
    read: Callable
    notes: dict
    remarks: tuple

    @property
    def writes(self):
        """Whether there is a decoder that writes about images."""
        return writes(self.shapes)

    @property
    def joining(self):
        """What joins an image and a text tower: `"heads"` for boxes, `"masks"`, a decoder, or `None`."""
        return joining(self.shapes)

    @property
    def encodes(self):
        """Whether they are an autoencoder of latents, or a part of one."""
        return any(first.fullmatch(name) for first in AUTOENCODER.values() for name in self.shapes)

    def settings(self, name):
        """Returns the content of a configuration by its file's name; `{}` if there is none."""
        return {} if self.folder is None else read_json(self.folder / name)

    def part(self, part="image"):
        """Returns the `Checkpoint` of a part: `"image"` for a Vision Transformer, `"text"` for the texts',
        `"heads"`, `"masks"`, `"latent_encoder"` or `"latent_decoder"`.

        Raises:
            ValueError: If there is none, or its configuration is damaged.
        """
        if part == "text" and self.suffix == ".keras":
            raise ValueError(
                "The text tower of a Keras file is a layer: keras.models.load_model(path).get_layer('text'). "
                f"Received: {str(self.path)!r}"
            )
        config, processor, nested = map(self.settings, CONFIGS)
        processor = nested if "image_processor" in nested else processor  # as transformers prefers
        with one_error(self.path):
            if part in FIRST:
                (names, found), prefix, others = unwrap_text(self.shapes, FIRST[part]), "", 0
            else:
                names, prefix, others, found = unwrap(self.shapes)
        found += [] if self.writes or part in FIRST else other_decoder(config)
        if part == "text" and self.folder is not None:
            config = config | self.settings(OPEN_CLIP) | {GENERATION: self.settings(GENERATION)}
        elif config.get("model_type") == PAIR and isinstance(config.get("encoder"), dict):
            config = config["encoder"]
        elif prefix and not config and self.folder is not None:
            stated = self.settings(OPEN_CLIP)
            with one_error(self.folder / OPEN_CLIP):
                config = of_open_clip(stated)
        shapes = {name: self.shapes[place] for name, place in names.items()}
        remarks = tuple(f"{str(self.path)!r}: {remark}" for remark in (*self.remarks, *found))

        def read(name):
            return self.read(names[name])

        return Checkpoint(self.path, shapes, read, config, processor, self.notes, others, remarks, self.writes)


@contextlib.contextmanager
def open_checkpoint(path, part="image"):
    """Opens a part of a checkpoint for reading; as `open_files` and `Files.part`."""
    with open_files(path) as files:
        yield files.part(part)


@contextlib.contextmanager
def open_files(path):
    """Opens a checkpoint for reading.

    Only names and shapes are read at first. Nothing is unpickled, and sizes are checked against the file's own.

    Args:
        path: A `.safetensors`, `.npz`, `.keras`, `.h5`, `.pth`, `.pt`, `.bin`, `.ckpt` or `.pth.tar` file; a directory
            with one, or with shards and `model.safetensors.index.json`; a preset of KerasHub; or the directory of a
            run.

    Yields:
        `Files`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or of another kind.
    """
    path = pathlib.Path(path)
    files = _files(path)
    with contextlib.ExitStack() as stack:
        shapes, readers, notes, remarks = {}, {}, {}, []
        for file in files:
            with one_error(file):
                file_shapes, reader, file_notes = stack.enter_context(_open(file))
                remarks += file_notes.pop("remarks", ())
            twice = sorted(set(file_shapes) & set(shapes))
            if twice:
                raise ValueError(f"{str(path)!r} contains {twice[0]!r} twice.")
            shapes |= file_shapes
            notes |= file_notes
            readers |= dict.fromkeys(file_shapes, (file, reader))

        @functools.lru_cache(maxsize=3)  # what is stacked is read block by block: queries, keys and values in turn
        def read(name):
            file, reader = readers[name]
            with one_error(file):
                array = reader(name)
                if array.shape != shapes[name]:
                    raise ValueError(f"{name} has the shape {array.shape}, and its header says {shapes[name]}")
                return array

        folder = path if path.is_dir() else path.parent
        suffix = files[0].suffix
        yield Files(path, suffix, None if suffix in (".npz", ".keras") else folder, shapes, read, notes, tuple(remarks))


def _open(file):
    return keras_hub.open_preset(file) if file.is_dir() else _OPENERS[file.suffix](regular(file))


def _files(path):
    """Returns the files of a checkpoint: one, or its shards."""
    if not path.exists():
        raise FileNotFoundError(f"There is no checkpoint {str(path)!r}.")
    if not path.is_dir():
        if not path.is_file():
            raise ValueError(f"A checkpoint must be a regular file or a directory. Received: {str(path)!r}")
        if path.suffix not in _OPENERS:
            raise ValueError(f"A checkpoint's name must end in one of {', '.join(SUFFIXES)}. Received: {str(path)!r}")
        return [path]
    if keras_hub.is_preset(path):
        return [path]
    path = trained_at(path) or path
    if path.suffix == ".keras":
        return [path]
    if (path / RUN).is_file():
        if not (path / TRAINED).is_file():
            raise ValueError(f"The run in {str(path)!r} has not ended: it has no {TRAINED} yet. Pass its best.keras.")
        return [path / TRAINED]
    for whole in WHOLE:
        if (path / whole).is_file():
            return [path / whole]
        index = read_json(path / f"{whole}.index.json").get("weight_map")
        if not index:
            continue
        names = sorted(set(index.values())) if isinstance(index, dict) else [index]
        if not all(isinstance(name, str) and (path / name).is_file() and "/" not in name for name in names):
            raise ValueError(f"{str(path)!r} lacks some of its shards: {names[:10]}")
        return [path / name for name in names]
    for suffix in SUFFIXES:
        files = sorted(file for file in path.iterdir() if file.suffix == suffix and file.is_file())
        files = [file for file in files if file.stem in ("model", "pytorch_model", "tf_model")] or files
        if len(files) == 1:
            return files
        if files:
            raise ValueError(f"{str(path)!r} contains several checkpoints. Pass one: {[f.name for f in files]}")
    raise ValueError(f"{str(path)!r} contains no file that ends in one of {', '.join(SUFFIXES)}.")


@contextlib.contextmanager
def _open_safetensors(path):
    with safetensors.safe_open(path, framework="np") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        shapes = {name: tuple(slice.get_shape()) for name, slice in slices.items()}
        types = {name: slice.get_dtype() for name, slice in slices.items()}
        stated = file.metadata() or {}
        note = stated.get("keras_vit")
    # Other names of a tensor that is written once, as safetensors writes what PyTorch shares.
    others = {name: stored for name, stored in stated.items() if stored in shapes and name not in shapes}
    shapes |= {name: shapes[stored] for name, stored in others.items()}

    def read(name):
        name = others.get(name, name)
        if types[name] not in FLOATS:
            raise ValueError(f"weights must be floats, and {name} contains {types[name]}")
        with safetensors.safe_open(path, framework="np") as file:  # mapped again, so that read pages do not add up
            return as_float32(name, file.get_tensor(name))

    notes = json.loads(note) if note else {}
    if not isinstance(notes, dict) or not isinstance(notes.get("arguments", {}), dict):
        raise ValueError("the notes of `save_checkpoint` must be a dictionary")
    yield shapes, read, notes


def _open_keras(path):
    from keras_vit.checkpoints.files import own

    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a Keras file")
    with zipfile.ZipFile(path) as archive:
        check_inflation(path, sum(member.file_size for member in archive.infolist()))
        if "config.json" in archive.namelist() and b"keras_hub" in archive.read("config.json"):
            raise ValueError(keras_hub.refusal(why="and only its presets are read, as save_to_preset writes them"))
    return own.open_keras(path)


_OPENERS = {".safetensors": _open_safetensors, ".npz": open_npz, ".keras": _open_keras, ".h5": open_h5}
_OPENERS |= dict.fromkeys(pytorch.SUFFIXES, pytorch.open_pytorch)
