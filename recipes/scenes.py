"""Depth of drawn scenes: boxes and balls on the ground, indoors and under the sky, with the exact depth of each pixel.

python recipes/scenes.py scenes
python -m keras_vit fit scenes data.source=folder:scenes
python -m keras_vit predict scenes picture.png --to depth

The first command draws 6,000 pictures of 64 x 64 pixels, and their depth in millimeters as PNG files of 16 bits; the
sky is a hole. The model learns relative inverse depth. After the scale and shift of each picture are fitted, its
absolute relative error on the test pictures is 0.155; that of the mean of all training maps is 0.199. It took 11
minutes on two CPU cores that also did other work.
"""

from keras_vit.config import Augment, Data, Depth, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="scenes",
    task=Depth(width=32),
    model=dict(variant=None, image_size=64, stem=((24, 2), (48, 2)), patch_size=2, width=128, depth=4, num_heads=4,
               mlp_dim=256),
    data=Data(source="folder:scenes", train="train", validation="validation", test="test", batch_size=64),
    augment=Augment(flip=True, jitter=0.3),
    optim=Optim(optimizer="muon", epochs=8, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.5,
                xla=False),  # faster on a CPU, by the convolutions of the head
    weights=Weights(file="scenes.keras", sha256="d19c76d79b8da3fa7b8036e9d6984d827b1d61a706df6cb7dd85c0106bb37ebf"),
    reached=Reached(scores=(("absolute relative error", 0.1545), ("that of the mean map", 0.1990), ("delta1", 0.7805)),
                    minutes=11.0, device="2 CPU cores, x86-64", commit="30917211",
                    note="the cores were shared with other work"),
)  # fmt: skip

SIDE, FOCAL = 64, 60.0  # pixels of a side, and from the eye to the picture
SCENES = {"train": 5_000, "validation": 500, "test": 500}
FAR = 60.0  # meters: what is farther is drawn, and has no depth


def scene(draw):
    """Returns the rays, and the shapes of a scene: functions from rays to depth, normals and a number for the texture.

    The eye is at the origin; x is right, y is down, z is ahead. Lengths are meters.
    """
    import numpy as np

    height, pitch = draw.uniform(0.8, 2.5), draw.uniform(-0.05, 0.45)
    rows, columns = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    rays = np.stack([columns / FOCAL, rows / FOCAL, np.ones_like(rows)], -1)
    turn = np.array([[1, 0, 0], [0, np.cos(pitch), np.sin(pitch)], [0, -np.sin(pitch), np.cos(pitch)]])
    rays = rays @ turn.T  # a depth of 1, which is counted along the middle ray, lies at their ends
    found = [plane((0, 1, 0), height)]
    if draw.random() < 0.5:  # a room: walls to the left, to the right and ahead
        found += [plane((0, 0, 1), draw.uniform(5, 15)), plane((1, 0, 0), draw.uniform(1.5, 5))]
        found += [plane((-1, 0, 0), draw.uniform(1.5, 5))]
    for _ in range(draw.randint(1, 5)):
        z, size = draw.uniform(2, 9), draw.uniform(0.25, 0.9)
        x = draw.uniform(-0.6, 0.6) * z
        if draw.random() < 0.5:
            found.append(ball((x, height - size, z), size))
        else:
            sides = (size, draw.uniform(0.3, 1.5) * size, draw.uniform(0.5, 1.5) * size)
            found.append(box((x, height - sides[1], z), sides, draw.uniform(0, np.pi / 2)))
    return rays, found


def plane(normal, distance):
    import numpy as np

    def hit(rays):
        away = rays @ np.array(normal, "float64")
        depth = np.where(away > 1e-6, distance / np.maximum(away, 1e-6), np.inf)
        places = rays * np.minimum(depth, 1e3)[..., None]
        checks = np.floor(places).sum(-1) % 2
        return depth, np.broadcast_to(-np.array(normal, "float64"), rays.shape), checks

    return hit


def ball(center, radius):
    import numpy as np

    def hit(rays):
        middle, squares = rays @ np.array(center), (rays**2).sum(-1)
        inside = middle**2 - squares * (np.dot(center, center) - radius**2)
        depth = np.where(inside > 0, (middle - np.sqrt(np.maximum(inside, 0))) / squares, np.inf)
        normals = (rays * np.minimum(depth, 1e3)[..., None] - center) / radius
        return np.where(depth > 0, depth, np.inf), normals, np.zeros_like(depth)

    return hit


def box(center, sides, angle):
    import numpy as np

    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])

    def hit(rays):
        ahead, eye = rays @ turn, -np.array(center) @ turn
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(sign * np.array(sides) - eye) / ahead for sign in (-1, 1)])
        near, far = np.nanmin(ends, 0), np.nanmax(ends, 0)  # of each pair of faces
        axis, depth = near.argmax(-1), near.max(-1)
        normals = -np.sign(np.take_along_axis(ahead, axis[..., None], -1)) * np.eye(3)[axis]
        return np.where((depth < far.min(-1)) & (depth > 0), depth, np.inf), normals @ turn.T, axis / 3

    return hit


def picture(draw):
    """Returns an image, uint8 `(SIDE, SIDE, 3)`, and the depth of its pixels in millimeters, 0 in the sky."""
    import numpy as np

    rays, found = scene(draw)
    depths, normals, textures = (np.stack(part) for part in zip(*(hit(rays) for hit in found)))
    first = depths.argmin(0)[None]
    depth = np.take_along_axis(depths, first, 0)[0]
    normal = np.take_along_axis(normals, first[..., None], 0)[0]
    texture = np.take_along_axis(textures, first, 0)[0]
    colors = np.array([[draw.uniform(0.15, 1) for _ in range(3)] for _ in found])
    light = np.array([draw.uniform(-1, 1), -1.0, draw.uniform(-1, 0.2)])
    shade = 0.45 + 0.55 * np.clip(normal @ (light / np.linalg.norm(light)), 0, 1)
    lit = colors[first[0]] * (shade * (1 - draw.uniform(0.05, 0.35) * texture))[..., None]
    known = depth < FAR
    sky = np.array([draw.uniform(0.4, 0.7), draw.uniform(0.6, 0.9), 1.0])
    noise = np.random.default_rng(draw.randrange(2**32)).normal(0, 0.02, lit.shape)
    image = np.clip(np.where(known[..., None], lit, sky) + noise, 0, 1)
    return np.rint(255 * image).astype("uint8"), np.rint(1000 * np.where(known, depth, 0)).astype("uint16")


def main(folder, splits=SCENES):
    """Draws the scenes of some splits: the same ones for the same versions of Python, NumPy and Pillow."""
    import pathlib
    import random

    from PIL import Image

    for split, count in splits.items():
        path = pathlib.Path(folder, split)
        for part in ("images", "depth"):
            (path / part).mkdir(parents=True)
        for i in range(count):
            image, depth = picture(random.Random(f"{split} {i}"))
            Image.fromarray(image).save(path / "images" / f"{i}.png")
            Image.fromarray(depth).save(path / "depth" / f"{i}.png")
        print(f"{path}: {count} scenes")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
