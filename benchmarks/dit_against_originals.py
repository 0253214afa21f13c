"""Compares DiTs with those of diffusers: random weights, the published widths, two blocks.

python benchmarks/dit_against_originals.py

It needs torch, timm, transformers and diffusers, and writes `results/dit_against_originals.json`.
"""

import json
import pathlib
import tempfile

from timm_alone import import_timm

import_timm()  # makes torchvision importable, before TensorFlow

import numpy as np  # noqa: E402
import torch  # noqa: E402
from against_originals import compared, randomize  # noqa: E402
from checkout import about  # noqa: E402
from diffusers import DiTTransformer2DModel  # noqa: E402

import keras_vit  # noqa: E402

RESULTS = pathlib.Path(__file__).parent / "results" / "dit_against_originals.json"
CASES = {  # heads, channels a head, side of the latents, patch, classes
    "DiT-XL/2, 32 x 32": (16, 72, 32, 2, 1000),
    "DiT-XL/2, 64 x 64": (16, 72, 64, 2, 1000),
    "DiT-L/4, 32 x 32": (16, 64, 32, 4, 1000),
    "DiT-S/2, 32 x 32, 10 classes": (6, 64, 32, 2, 10),
}


def case(heads, channels, side, patch, classes):
    theirs = DiTTransformer2DModel(
        num_attention_heads=heads,
        attention_head_dim=channels,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=side,
        patch_size=patch,
        num_embeds_ada_norm=classes,
    )
    randomize(theirs)
    rng = np.random.default_rng(0)
    x, steps, labels = rng.normal(size=(3, side, side, 4)).astype("float32"), np.array([0, 250, 999]), [0, classes, 1]
    with torch.no_grad():
        given = {"timestep": torch.tensor(steps), "class_labels": torch.tensor(labels)}
        expected = theirs.eval()(torch.tensor(x.transpose(0, 3, 1, 2)), **given).sample.numpy()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        model = keras_vit.from_checkpoint(folder)
    found = model({"images": x, "times": steps.astype("float32"), "labels": np.array(labels, "int32")})
    return compared(found, expected.transpose(0, 2, 3, 1))


def main():
    rows = {name: case(*sizes) for name, sizes in CASES.items()}
    stated = about("keras", "torch", "diffusers")
    RESULTS.write_text(json.dumps({**stated, "cases": rows}, indent=2) + "\n")
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
