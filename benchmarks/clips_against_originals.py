"""Compares models of clips with those of transformers: random weights, the published widths, two blocks.

python benchmarks/clips_against_originals.py

It needs torch and transformers, and writes `results/clips_against_originals.json`.
"""

import json
import pathlib
import tempfile

from timm_alone import import_timm

import_timm()  # makes torchvision importable, before TensorFlow

import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from against_originals import compared, randomize  # noqa: E402
from checkout import about  # noqa: E402

import keras_vit  # noqa: E402

RESULTS = pathlib.Path(__file__).parent / "results" / "clips_against_originals.json"
CASES = {  # kind, options of the configuration, and of ours
    "ViViT B/16x2, 32 frames": ("Vivit", dict(num_labels=400), {}),
    "VideoMAE B/16x2, 16 frames": ("VideoMAE", dict(num_labels=400), {}),
    "VideoMAE L/16x2, first token": (
        "VideoMAE",
        dict(num_labels=174, use_mean_pooling=False, hidden_size=1024, num_attention_heads=16, intermediate_size=4096),
        {},
    ),
    "VideoMAE S/16x2, 8 frames of 160 x 160": (
        "VideoMAE",
        dict(
            num_labels=10, hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_frames=8, image_size=160
        ),
        {},
    ),
}
PROCESSORS = {"Vivit": dict(do_normalize=False), "VideoMAE": {}}  # as the published files have them


def model_case(kind, options, own):
    config = getattr(transformers, f"{kind}Config")(num_hidden_layers=2, **options)
    theirs = randomize(getattr(transformers, f"{kind}ForVideoClassification")(config))
    x = np.random.default_rng(0).normal(size=(1, config.num_frames, 3, config.image_size, config.image_size))
    x = x.astype("float32")
    with torch.no_grad():
        expected = theirs(torch.tensor(x)).logits.numpy()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        model = keras_vit.from_checkpoint(folder, **own)
    body = keras.Model(model.get_layer("rescale").output, model.output)
    frames = x.transpose(0, 1, 3, 4, 2)
    return compared(body(frames.reshape(1, -1, *frames.shape[3:])), expected)


def processor_case(kind):
    """Compares what is fed to the network, of a clip of 40 frames of 320 x 426 pixels."""
    clip = np.random.default_rng(0).integers(0, 256, (40, 10, 13, 3)).astype("uint8")
    clip = np.repeat(np.repeat(clip, 32, 1), 33, 2)[:, :, :426]
    processor = getattr(transformers, f"{kind}ImageProcessor")(**PROCESSORS[kind])
    config = getattr(transformers, f"{kind}Config")(num_hidden_layers=1)
    with tempfile.TemporaryDirectory() as folder:
        getattr(transformers, f"{kind}ForVideoClassification")(config).save_pretrained(folder)
        processor.save_pretrained(folder)
        model = keras_vit.from_checkpoint(folder, frames=4)
    pixels = keras_vit.preprocess(model, clip)
    frames = keras.Model(model.input, model.get_layer("rescale").output)(pixels)
    mine = keras.ops.convert_to_numpy(frames).reshape(4, 224, 224, 3)
    rule = model.get_layer("rescale").metadata["evaluation"]["frames"]
    start = (40 - 3 * rule["stride"] - 1) // 2
    theirs = processor([*clip[start : start + 4 * rule["stride"] : rule["stride"]]], return_tensors="np")
    theirs = np.asarray(theirs["pixel_values"])[0].transpose(0, 2, 3, 1)
    return {"max_abs_diff": float(np.abs(mine - theirs).max())}


def main():
    rows = {name: model_case(*case) for name, case in CASES.items()}
    rows |= {f"what {kind}'s processor makes of a clip": processor_case(kind) for kind in PROCESSORS}
    stated = about("keras", "torch", "transformers")
    RESULTS.write_text(json.dumps({**stated, "cases": rows}, indent=2) + "\n")
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
