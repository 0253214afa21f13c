"""Where trained weights are, by what a caller names."""

import pathlib
import re

from keras_vit.checkpoints.files.read import SUFFIXES
from keras_vit.checkpoints.files.repository import RUN
from keras_vit.utils.files import folder


def location(source):
    """Returns the path or address of a source, also of shipped weights; `None` for any other name."""
    text, path = str(source), pathlib.Path(str(source)).expanduser()
    shipped = {file.stem: file for file in folder("saved_models").glob("*.keras")}
    if text in shipped and not (path / RUN).is_file():  # a run of that name comes first, as in `load_run`
        return shipped[text]
    is_path = path.suffix in SUFFIXES or path.exists() or ("/" in text and not re.match(r"[\w+]+/\d+(-|$)", text))
    return source if is_path or "://" in text else None
