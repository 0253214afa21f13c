"""References of image files, for models of `Restore` that take them."""

from keras_vit.utils import checks
from keras_vit.utils.folders import in_folder, is_image
from keras_vit.utils.images import read_pixels
from keras_vit.utils.names import composed


class Pictures:
    """A sequence of pictures, each of which is read when it is asked for."""

    def __init__(self, files, channels):
        self.files = files
        self.channels = channels

    def __getitem__(self, index):
        return read_pixels(self.files[index], self.channels)

    def take(self, indices, axis=0):
        """Returns some of them, as NumPy's arrays do."""
        return Pictures([self.files[i] for i in indices], self.channels)


def of_files(trained, reference, files):
    """Returns what the model takes besides image files, `{"references": Pictures}`; empty without references.

    Args:
        trained: A `Trained`.
        reference: File for all images, or folder with a file of the name of each; `None` for models of images alone.
        files: Paths of the images.

    Raises:
        ValueError: For a reference that the model does not take, that is missing, or of which there are two.
        FileNotFoundError: If there is no such file or folder.
    """
    takes = "references" in trained.task.inputs
    if takes != (reference is not None):
        rule = "needs a picture with each image: pass `reference`" if takes else "takes no reference"
        raise ValueError(f"{type(trained.task).__name__} of this model {rule}. Received: reference={reference!r}")
    if not takes:
        return {}
    path = checks.path("reference", reference)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return {"references": Pictures(_beside(path, files) if path.is_dir() else [path] * len(files), trained.size[2])}


def check_none(trained, what):
    """Raises ValueError for a model with references; `what` shows images alone."""
    if "references" in trained.task.inputs:
        raise ValueError(
            f"{what} shows images alone: call predict with `reference`. Received: a model that takes references"
        )


def _beside(folder, files):
    names = {}
    for path in in_folder(folder):
        if is_image(path.name):
            names.setdefault(composed(path.stem), []).append(path)
    for file in files:
        found = names.get(composed(file.stem), [])
        if len(found) != 1:
            raise ValueError(
                f"{str(folder)!r} must have one reference of the name of each image. "
                f"Received: {len(found)} for {str(file)!r}"
            )
    return [names[composed(file.stem)][0] for file in files]
