"""Opens a preset of KerasHub: a folder as `task.save_to_preset` or `backbone.save_to_preset` writes it."""

import contextlib
import re

import numpy as np

from keras_vit.checkpoints.files.npz import as_float32, check_inflation
from keras_vit.checkpoints.files.settings import read_json
from keras_vit.utils.files import regular

CONFIG, METADATA, TASK = "config.json", "metadata.json", "task.json"
CONVERTER = "image_converter.json"
WEIGHTS, HEAD, SHARDS = "model.weights.h5", "task.weights.h5", "model.weights.json"
FILES = (CONFIG, METADATA, TASK, CONVERTER, WEIGHTS, HEAD, SHARDS)
IN_TASK = "task/"  # before the names of the second file of weights
NOTES = "keras_hub"  # in a checkpoint's notes: what the folder states
EMBEDDING = "layers/dinov2_embedding"
MARK = "keras_hub>"  # before the registered name of a class
CLASSES = {f"{family}Backbone": family for family in ("ViT", "DeiT", "DINOV2")}  # what is read
ACTIVATIONS = {None: None, "linear": None, "softmax": "classes", "sigmoid": "labels"}  # kinds of output, by activation
# Of what is not read, and of what is: models by which KerasHub's were converted, in a format that is read here.
SOURCES = {
    "DINOV3": "facebook/dinov3-vits16-pretrain-lvd1689m",
    "DINOV2": "facebook/dinov2-base",
    "DeiT": "facebook/deit-base-distilled-patch16-224",
    "SigLIP": "google/siglip-base-patch16-224",
    "CLIP": "openai/clip-vit-base-patch32",
    "DepthAnything": "depth-anything/Depth-Anything-V2-Small-hf",
    "ViT": "google/vit-base-patch16-224",
}
# Parts that have no bias by an option of a backbone; here they get one of zeros.
BIASES = {
    "use_mha_bias": r"(.*/mha/output_dense)/vars/0",
    "use_mlp_bias": r"(.*/mlp/dense_[12])/vars/0",
    "use_patch_bias": r"(.*/patch_embedding)/vars/0",
}


def is_preset(folder):
    """Returns whether a folder is a preset of KerasHub, by its `metadata.json`."""
    return "keras_hub_version" in read_json(folder / METADATA)


def refusal(kind="", why=""):
    """Returns why a model of KerasHub is not read, a part of a sentence.

    Args:
        kind: Its class, if known.
        why: What is wrong with it; empty if its class alone is.
    """
    source = next((each for name, each in SOURCES.items() if kind.startswith(name)), SOURCES["ViT"])
    of = f", {kind}" if kind else ""
    why = why or (
        "of which presets with ViT, DeiT or DINOv2 are read"
        if kind
        else "whose weights have other names than this package's"
    )
    return f"it is a model of KerasHub{of}, {why}. Load it with keras_hub, or load its source here, such as 'hf://{source}'"


@contextlib.contextmanager
def open_preset(folder):
    """Opens a preset; see `read.open_checkpoint`. Yields shapes by name, a function that reads, and notes.

    Names are those in the files of weights, with `task/` before the head's. The notes have what the folder states under
    `"keras_hub"`, see `stated`.
    """
    import h5py

    from keras_vit.checkpoints.heads import KIND

    notes = stated(folder)
    with contextlib.ExitStack() as stack:
        found = {}
        for name, prefix in ((WEIGHTS, ""), (HEAD, IN_TASK)):
            if prefix and notes["task"] is None:
                continue
            try:
                file = stack.enter_context(h5py.File(regular(folder / name), "r"))
                found |= (inside := _datasets(file, prefix))
                check_inflation(folder / name, sum(node.nbytes for node in inside.values()))
            except (OSError, RuntimeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from None
        for name, own in _of_dino(notes["backbone"]).items() if notes["family"] == "DINOV2" else ():
            found |= {own: found.pop(name)} if name in found else {}
        shapes = {name: tuple(node.shape) for name, node in found.items()}
        zeros = _biases(shapes, notes["backbone"])

        def read(name):
            if name in zeros:
                return np.zeros(zeros[name], "float32")
            values = found[name][()]
            if found[name].attrs.get("dtype") == "bfloat16":  # which HDF5 has not
                values = values.view("bfloat16")
            return as_float32(name, values)

        yield shapes | zeros, read, {NOTES: notes, KIND: ACTIVATIONS.get(activation(notes["task"]))}


def activation(task):
    """Returns the activation of a classifier's head by its name, `None` without one."""
    stated = (task or {}).get("activation")
    return stated.get("config") if isinstance(stated, dict) else stated  # a function, or its name


def _of_dino(backbone):
    """Returns names of the arrays that DINOv2's embedding numbers, by the files'."""
    registers = ["register_tokens"] if backbone.get("num_register_tokens") else []
    masks = ["mask_token"] if backbone.get("use_mask_token", True) else []
    smooth = (
        "_antialias" if backbone.get("antialias_in_interpolation") else ""
    )  # how they are resampled is the format's
    names = ["cls_token", *masks, *registers, "interpolated", f"position_embeddings{smooth}"]
    return {f"{EMBEDDING}/vars/{i}": f"{EMBEDDING}/{name}" for i, name in enumerate(names)}


def stated(folder):
    """Returns what a preset states, a dictionary.

    - `family`: `"ViT"`, `"DeiT"` or `"DINOV2"`.
    - `backbone`, `task`: options of the classes; `task` is `None` of a backbone alone.
    - `converter`: options of what prepares images, `None` without any; and `prepared` the file that says it.

    Raises:
        ValueError: For another model, a missing file, or one that says something else.
    """
    backbone, family = _backbone(folder)
    task, prepared = None, CONVERTER
    if (folder / TASK).is_file():
        kind, task = _object(folder / TASK, read_json(folder / TASK))
        if kind != f"{family}ImageClassifier":
            raise ValueError(
                refusal(kind, f"and a preset of {family} must be an image classifier, or a backbone alone")
            )
        _, backbone = _object(folder / TASK, task.get("backbone"), (f"{family}Backbone",))
        preprocessor, prepared = task.get("preprocessor"), TASK
        converter = None
        if preprocessor is not None:
            _, options = _object(
                folder / TASK, preprocessor, (f"{family}ImageClassifierPreprocessor", "ImageClassifierPreprocessor")
            )
            converter = options.get("image_converter")
    else:
        converter = read_json(folder / CONVERTER) or None
    if converter is not None:
        _, converter = _object(folder / prepared, converter, (f"{family}ImageConverter", "ImageConverter"))
    needed = [WEIGHTS, *([HEAD] if task is not None else [])]
    if task is None and (folder / HEAD).is_file():
        needed.append(TASK)
    if missing := [name for name in needed if not (folder / name).is_file()]:
        shards = f": its weights are in several files, {SHARDS}" if (folder / SHARDS).is_file() else ""
        raise ValueError(f"a preset of KerasHub must have {missing[0]}{shards}")
    return {"family": family, "backbone": backbone, "task": task, "converter": converter, "prepared": prepared}


def _backbone(folder):
    """Returns the options of a preset's backbone, and its family."""
    if not (folder / CONFIG).is_file():
        raise ValueError(refusal(why=f"and its preset has no {CONFIG}"))
    kind, options = _object(folder / CONFIG, read_json(folder / CONFIG))
    if kind not in CLASSES:
        raise ValueError(refusal(kind))
    return options, CLASSES[kind]


def _object(path, content, kinds=None):
    """Returns the class and the options of an object in Keras's words; ValueError for another class or no object."""
    name = content.get("registered_name") if isinstance(content, dict) else None
    options = content.get("config") if isinstance(content, dict) else None
    if not isinstance(name, str) or not isinstance(options, dict):
        raise ValueError(f"{path.name} must describe an object of KerasHub, with registered_name and config")
    kind = name.removeprefix(MARK)
    if not name.startswith(MARK) or (kinds and kind not in kinds):
        expected = f" must be {' or '.join(kinds)}" if kinds else " must be of KerasHub"
        raise ValueError(f"the class in {path.name}{expected}. Received: {name!r}")
    return kind, options


def _datasets(file, prefix):
    """Returns the arrays of an HDF5 file by name, without those of the optimizer and of random generators."""
    found = {}

    def visit(place, node):  # of links, only those to the file's own data are followed
        import h5py

        if not isinstance(node, h5py.Dataset):
            return
        if node.is_virtual or node.external:
            raise ValueError(f"{place} is in another file")
        if not re.match(r"optimizer/|.*seed_generator/", place):
            found[prefix + place] = node

    file.visititems(visit)
    return found


def _biases(shapes, backbone):
    """Returns the shapes of biases that a backbone has not, by name; ValueError if the file has one all the same."""
    zeros = {}
    for option, pattern in BIASES.items():
        if backbone.get(option, True):
            continue
        for kernel, shape in shapes.items():
            if match := re.fullmatch(pattern, kernel):
                name = f"{match[1]}/vars/1"
                if name in shapes:
                    raise ValueError(f"{name} is a bias, and {option} is off")
                zeros[name] = shape[-1:]
    return zeros
