"""Autoencoders of latents with random weights, and a folder of diffusers with a DiT and its autoencoder."""

import json
import pathlib
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

GOLDEN = pathlib.Path(__file__).parent / "golden" / "objects" / "autoencoder_kl"
DIT = pathlib.Path(__file__).parent / "golden" / "generation" / "dit"
SIZES = dict(widths=(4, 8), depth=1, groups=2, latent_channels=2, scaling_factor=0.5, shift_factor=0.25)
NOISE = {
    "_class_name": "DDIMScheduler", "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule": "linear",
    "clip_sample": False, "num_train_timesteps": 1000, "prediction_type": "epsilon", "trained_betas": None,
}  # fmt: skip
CLASSES = [f"class {i}" for i in range(10)]
FILE = "diffusion_pytorch_model.safetensors"


def tensors():
    """Returns the arrays of the golden autoencoder by name."""
    return load_file(GOLDEN / "checkpoint.safetensors")


def gray(folder):
    """Writes the golden autoencoder for gray images. Returns the folder."""
    arrays = tensors()
    arrays["encoder.conv_in.weight"] = arrays["encoder.conv_in.weight"].sum(1, keepdims=True)
    for name in ("weight", "bias"):
        arrays[f"decoder.conv_out.{name}"] = arrays[f"decoder.conv_out.{name}"][:1]
    folder.mkdir()
    save_file(arrays, folder / FILE)
    shutil.copy(GOLDEN / "config.json", folder)
    return folder


def pipeline(folder, noise=None, **index):
    """Writes a folder of diffusers: the golden DiT, the golden autoencoder, and settings. Returns it."""
    for name, source in {"transformer": DIT, "vae": GOLDEN}.items():
        (folder / name).mkdir(parents=True)
        shutil.copy(source / "config.json", folder / name)
        shutil.copy(source / "checkpoint.safetensors", folder / name / FILE)
    (folder / "scheduler").mkdir()
    (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(NOISE | (noise or {})))
    parts = {"transformer": ["diffusers", "Transformer2DModel"], "vae": ["diffusers", "AutoencoderKL"]}
    stated = {"_class_name": "DiTPipeline", **parts, "id2label": {str(i): name for i, name in enumerate(CLASSES)}}
    (folder / "model_index.json").write_text(json.dumps(stated | index))
    return folder


def spread(model, seed=0):
    """Gives a model random weights of a size that lets numbers through. Returns it."""
    random = np.random.default_rng(seed)
    for weight in model.weights:
        count = np.prod(weight.shape[:-1]) or 1
        weight.assign(random.normal(0.1, 1 / np.sqrt(count), weight.shape))
    return model
