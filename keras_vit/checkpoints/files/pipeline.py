"""A folder of diffusers with several models: which of its parts are read."""

import pathlib

from keras_vit.checkpoints.files.settings import read_json

INDEX = "model_index.json"
CONFIG, SCHEDULER = "config.json", "scheduler_config.json"
DRAWS = "DiTPipeline"
MODEL, LATENTS, NOISE = "transformer", "vae", "scheduler"  # folders: the DiT, its autoencoder, its noise
SETTINGS = [INDEX, f"{MODEL}/{CONFIG}", f"{LATENTS}/{CONFIG}", f"{NOISE}/{SCHEDULER}"]
OF_PART = {"encoder": LATENTS, "decoder": LATENTS}
# The kinds of weights in a folder of diffusers, the first one first. There may be others, such as halves: `.fp16.`
WEIGHTS = [
    [f"diffusion_pytorch_model.{ending}", f"diffusion_pytorch_model-*.{ending}", f"diffusion_pytorch_model.{index}"]
    for ending, index in (("safetensors", "safetensors.index.json"), ("bin", "bin.index.json"))
]


def is_pipeline(folder):
    """Returns whether a folder has several models."""
    return (pathlib.Path(folder) / INDEX).is_file()


def folders(folder, part, source):
    """Returns the names of the folders whose weights a part needs.

    Raises:
        ValueError: If the folder is no DiT's, and none of its autoencoder is asked for; if it lacks one.
    """
    index = read_json(pathlib.Path(folder) / INDEX)
    names = (OF_PART[part],) if part in OF_PART else (MODEL, LATENTS)
    if part not in OF_PART and index.get("_class_name") != DRAWS:
        raise ValueError(
            f"Of folders with several models, those of a {DRAWS} are read, and of any the autoencoder: "
            f"part='decoder'. Received: {str(source)!r}, a {index.get('_class_name')}"
        )
    if missing := [name for name in names if name not in index]:
        raise ValueError(f"{str(source)!r} must have {missing[0]!r} in its {INDEX}. Received: {[*index]}")
    return names
