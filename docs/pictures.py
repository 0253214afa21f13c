"""Draws the pictures of `docs/looking.md` again, and notes which weights the pages' pictures show.

    python docs/pictures.py

`docs/images/weights.json` has, for each picture, the shipped weights that it shows and their checksum. When weights
change, the test that reads it names the pictures to draw again: those of other pages by the commands on these pages.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NOTES = HERE / "images" / "weights.json"
SHIPPED = HERE.parent / "saved_models"
OF_PAGES = {  # weights that the pictures of a page show
    "anomaly.png": "",
    "answers.png": "easy_vqa",
    "blood_cells.png": "blood_cells",
    "captions.png": "easy_vqa_captions",
    "cifar10.png": "cifar10_hybrid",
    "clip_boxes.png": "",
    "clips.gif": "moving_digits",
    "color.png": "",
    "drawn.png": "mnist_dit",
    "drawn_latents.png": "mnist_latent_dit",
    "emoji.png": "emoji",
    "from_noise.png": "mnist_dit",
    "labels.png": "",
    "latents.png": "mnist_latents",
    "lines.png": "lines",
    "masked.png": "cifar10_mae",
    "nuclei.png": "nuclei",
    "numbers.png": "",
    "pca.png": "",
    "reference.png": "superres_reference",
    "scenes.png": "scenes",
    "superres.png": "superres_x2",
    "translated.png": "",
    "words.png": "emoji",
}


def checksum(name):
    """Returns the checksum of the weights in a shipped file, which does not change with its settings."""
    with zipfile.ZipFile(SHIPPED / f"{name}.keras") as file:
        return f"{file.getinfo('model.weights.h5').CRC:08x}"


def noted(name):
    """Returns what `weights.json` says of a picture of some weights."""
    return f"{name} {checksum(name)}" if name else ""


def redraw(page="looking.md"):
    """Runs the code of a page, and replaces its pictures. Returns their names."""
    code = re.findall(r"```python\n(.*?)```", (HERE / page).read_text("utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        before = pathlib.Path.cwd()
        os.chdir(folder)
        try:
            exec("\n".join(code), {"__name__": "__page__"})
        finally:
            os.chdir(before)
        drawn = sorted(
            path.name for path in pathlib.Path(folder).glob("*.png") if (HERE / "images" / path.name).exists()
        )
        for name in drawn:
            shutil.copy(pathlib.Path(folder, name), HERE / "images" / name)
    return drawn


if __name__ == "__main__":
    notes = json.loads(NOTES.read_text("utf-8")) if NOTES.exists() else {}
    notes |= {name: noted("" if name == "history.png" else "mnist") for name in redraw()}
    notes |= {name: noted(weights) for name, weights in OF_PAGES.items() if name not in notes}
    NOTES.write_text(json.dumps(dict(sorted(notes.items())), indent=1) + "\n", "utf-8")
