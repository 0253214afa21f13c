"""Parts of an autoencoder that this package trained: of a run, a `.keras` file or the weights that ship."""

from keras_vit.checkpoints.own_models import opened
from keras_vit.models.whole_autoencoder import LATENTS, is_autoencoder, part_of, scale_of, sizes_of
from keras_vit.utils import checks

ARGUMENTS = ("image_size", "latent_size", "name", "dtype", "metadata")


def own_part(path, request, sha256=None):
    """Returns the encoder or decoder of an autoencoder in a `.keras` file.

    Args:
        path: The file.
        request: What the caller asks for, a `Request` with `part` `"encoder"` or `"decoder"`.
        sha256: As in `from_checkpoint`.

    Raises:
        ValueError, FileNotFoundError: If there is no such file, or another model in it; for other overrides.
    """
    checks.options("overrides", request.overrides, ARGUMENTS[:-1])
    about = {"source": str(request.source), **(request.metadata or {})}
    return part_of(_opened(path, sha256), request.part, **{**request.overrides, "metadata": about})


def own_sizes(path):
    """Returns factor, channels, latent channels and scale of an autoencoder in a `.keras` file."""
    model = _opened(path)
    (_, height, _, channels), scale = model.input_shape, scale_of(model)
    rows, latent_channels = model.get_layer(LATENTS).output.shape[1], sizes_of(model)["latent_channels"]
    return height // rows, channels, latent_channels, (scale.get("scaling_factor"), scale.get("shift_factor"))


def _opened(path, sha256=None):
    model = opened(path, sha256)
    if not is_autoencoder(model):
        raise ValueError(
            "The file must be an autoencoder of `Compress`; a part of one that Keras saved is read by "
            f"keras.models.load_model(path). Received: {str(path)!r} with {model.name!r}"
        )
    return model
