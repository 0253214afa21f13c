"""Reads `tf_model.h5`, as the TensorFlow classes of transformers wrote it before version 5, under PyTorch's names."""

import contextlib

import numpy as np

from keras_vit.checkpoints.files.npz import as_float32, check_inflation

WORDS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}  # of a name's last part
AXES = {2: (1, 0), 4: (3, 2, 0, 1)}  # of kernels: PyTorch's order of TensorFlow's axes
WRAPPERS = ("clip",)  # layers that PyTorch's names do not have


@contextlib.contextmanager
def open_h5(path):
    """Opens a `tf_model.h5`; see `read.open_checkpoint`. Yields shapes by name, a function that reads, and no notes."""
    import h5py

    with h5py.File(path, "r") as file:
        if "model_config" in file.attrs:
            raise ValueError("it is a Keras model. Load it with keras.models.load_model, and save it as .keras")
        if path.name.endswith(".weights.h5") or "layers" in file or "vars" in file:
            raise ValueError(
                "it has the weights of a Keras model without the model. Build that model as it was, such as by "
                "keras_vit.vit or KerasHub, and call model.load_weights(path); then save it as .keras, to load that "
                "with another size or head"
            )
        found = {}

        def visit(place, node):  # of links, only those to the file's own data are followed
            if isinstance(node, h5py.Dataset):
                if node.is_virtual or node.external:
                    raise ValueError(f"{place} is in another file")
                same = tuple(range(node.ndim))
                found[pytorch_name(place)] = (node, AXES.get(node.ndim, same) if place.endswith("/kernel:0") else same)

        file.visititems(visit)
        check_inflation(path, sum(node.nbytes for node, _ in found.values()))
        shapes = {name: tuple(node.shape[axis] for axis in axes) for name, (node, axes) in found.items()}

        def read(name):
            node, axes = found[name]
            return as_float32(name, np.transpose(node[()], axes))

        yield shapes, read, {}


def pytorch_name(place):
    """Returns PyTorch's name of a weight.

    Example:

    >>> pytorch_name("vit/tf_vi_t_model/vit/encoder/layer_._0/layernorm_before/gamma:0")
    'vit.encoder.layer.0.layernorm_before.weight'
    """
    _, _, *parts = place.removesuffix(":0").replace("_._", ".").split("/")  # the layer's and the model's group
    if parts and parts[0] in WRAPPERS:
        del parts[0]
    return ".".join([*parts[:-1], WORDS.get(parts[-1], parts[-1])] if parts else [place])
