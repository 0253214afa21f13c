"""A folder of drawn squares, sentences that say which is meant, and their masks."""

import numpy as np
from PIL import Image

COLORS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
SIDE = 16


def scene(number):
    """Returns a picture of two squares, uint8 `(SIDE, SIDE, 3)`, and the mask of each, 1 or 0, by its color."""
    rng = np.random.default_rng(number)
    image, masks = 120 + rng.integers(-10, 10, (SIDE, SIDE, 3)), {}
    for place, name in enumerate(rng.permutation([*COLORS])[:2]):
        mask = np.zeros((SIDE, SIDE), "uint8")
        top, left = rng.integers(0, 10), 8 * place + rng.integers(0, 3)
        mask[top : top + 6, left : left + 5] = 1
        image[mask == 1] = COLORS[name]
        masks[str(name)] = mask
    return image.astype("uint8"), masks


def written(folder, count=24):
    """Writes scenes, the masks and the table of their sentences, a row for each square; returns the folder."""
    lines = ["file_name,text,mask"]
    for part in ("images", "masks"):
        (folder / part).mkdir(parents=True)
    for i in range(count):
        image, masks = scene(i)
        Image.fromarray(image).save(folder / "images" / f"{i}.png")
        for name, mask in masks.items():
            Image.fromarray(mask).save(folder / "masks" / f"{i}_{name}.png")
            lines.append(f"images/{i}.png,the {name} square,masks/{i}_{name}.png")
    (folder / "metadata.csv").write_text("\n".join(lines))
    return folder
