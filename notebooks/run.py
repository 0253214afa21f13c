"""Runs notebooks from top to bottom, in a folder of their own, and writes them with what they gave.

python notebooks/run.py                                    all of them, at full size, into the folder notebooks_run
python notebooks/run.py notebooks/5_build_your_own.ipynb   one
python notebooks/run.py --overwrite                        all of them, in place
"""

import base64
import io
import pathlib
import re
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = pathlib.Path(__file__).parent
# What TensorFlow's libraries log on their own, a line each. All else that is written to the error output stays.
LOG = re.compile(
    r"^(WARNING: All log messages before absl|[IWE]\d{4} [\d:.]+ +\d+ \S+:\d+\]|INFO: Created TensorFlow Lite"
    r"|To enable the following instructions:).*\n?",
    re.MULTILINE,
)
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def run(path, folder, *, first="", kernel=None, **parameters):
    """Executes a notebook.

    Args:
        path: The notebook.
        folder: Where it runs, and leaves its files.
        first: Code to run before all else.
        kernel: A running `jupyter_client.KernelManager` to take; one of its own if `None`.
        **parameters: Values in place of those in the cell that is tagged `parameters`.

    Returns:
        The notebook with its outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    source = cell.source
    changes = [f"{name} = {value!r}" for name, value in parameters.items()]
    cell.source = "\n".join([f"%cd -q {folder}", first, source, *changes])
    NotebookClient(notebook, km=kernel, record_timing=False, coalesce_streams=True).execute()
    cell.source = source
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = {name: value for name, value in cell.metadata.items() if name == "tags"}
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = LOG.sub("", output.text)
            if "image/png" in output.get("data", ()):
                output.data["image/png"] = in_256_colors(output.data["image/png"])
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("text") != ""]
    return notebook


def in_256_colors(png):
    """Returns a picture, in base 64 as notebooks hold it, at a third of its size."""
    picture, file = Image.open(io.BytesIO(base64.b64decode(png))), io.BytesIO()
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    paths = [pathlib.Path(word) for word in sys.argv[1:] if word != "--overwrite"]
    for path in paths or sorted(HERE.glob("*.ipynb")):
        to = path if "--overwrite" in sys.argv else pathlib.Path("notebooks_run", path.name)
        to.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(path, folder), to)
        print(to)
