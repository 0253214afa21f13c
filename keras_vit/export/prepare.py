"""What every export does before and around its own work."""

import contextlib
import pathlib
import tempfile

import keras


def float32(model):
    """Returns the model, or its copy in float32: graphs of mixed precision do not convert."""
    if all(layer.dtype_policy.name == "float32" for layer in model._flatten_layers(include_self=False)):
        return model

    def rebuild(layer):
        return layer.from_config({**layer.get_config(), "dtype": "float32"})

    copy = keras.models.clone_model(model, clone_function=rebuild, recursive=True)
    copy.set_weights(model.get_weights())
    return copy


def need_tensorflow_backend(what):
    """Raises unless Keras runs on TensorFlow, which does the conversion."""
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"{what} is written by TensorFlow: save the model as .keras, and load and export it where "
            f"KERAS_BACKEND=tensorflow. Received: backend {keras.backend.backend()!r}"
        )


@contextlib.contextmanager
def destination(path, overwrite):
    """Yields a temporary path; what stands there at the end moves to `path`, and after an error nothing does.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false, or it is a folder and no SavedModel.
        OSError: If its folder cannot be made or written to.
    """
    path = pathlib.Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists. Choose another path, or pass overwrite=True.")
    if path.is_dir() and not (path / "saved_model.pb").exists():
        raise FileExistsError(f"{str(path)!r} is a folder and no SavedModel: it is not overwritten.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export-") as folder:
        temporary = pathlib.Path(folder) / path.name
        yield temporary
        old = pathlib.Path(folder) / "old"
        if path.exists():
            path.rename(old)
        try:
            temporary.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
