"""How a model leads from noise to an image: the times at which it is asked, and what each answer adds."""

import math
from typing import NamedTuple

import numpy as np

SCHEDULE = "schedule"  # in the metadata of a model that predicts noise
SHIFT = "shift"  # in its metadata: how the times of its steps are shifted
BETAS = ("linear", "scaled_linear")
CLIPS = ("DDIMScheduler", "DDPMScheduler")  # clip what they predict, unless they say otherwise
USUAL = {"num_train_timesteps": 1000, "beta_start": 1e-4, "beta_end": 0.02, "beta_schedule": "linear"}  # diffusers'
# Of diffusers' settings of a scheduler, those that change what a model was trained on, or what it predicts.
COMPUTED = {
    "prediction_type": "epsilon",
    "trained_betas": None,
    "thresholding": False,
    "rescale_betas_zero_snr": False,
}


class Schedule(NamedTuple):
    """The steps from noise to an image: `x` becomes `keep[i] * x + add[i] * model(x, times[i])`, each a tuple."""

    times: tuple
    keep: tuple
    add: tuple


def flow(steps, shift=1.0):
    """Returns the `Schedule` of a velocity, followed from time 0 to 1 (Liu et al. 2023, arXiv:2209.03003).

    Args:
        steps: Number of steps.
        shift: As in `shifted`.
    """
    times = shifted(np.arange(steps + 1) / steps, shift)
    return Schedule(tuple(times[:-1].tolist()), (1.0,) * steps, tuple(np.diff(times).tolist()))


def shifted(time, shift):
    """Returns times nearer to the noise, at 0: `time / (time + shift * (1 - time))`, numbers or a tensor.

    Esser et al. 2024 (arXiv:2403.03206), equation 23, where the time of an image is 0. More pixels need more noise to
    hide what is large in an image, so that times near the noise matter more.

    Args:
        time: From 0 to 1.
        shift: Above 0; 1 for the times themselves.
    """
    return time / (time + shift * (1 - time))


def noise(steps, settings):
    """Returns the `Schedule` of a model that predicts noise: DDIM without noise of its own, or probability flow.

    Song et al. 2021 (arXiv:2010.02502), equation 12 with sigma = 0; in `x / sqrt(alpha)` this is Euler's method, so
    that Heun's corrects it as any other. Times are evenly spaced from 0 on, as diffusers' "leading" ones without
    offset, and the last step ends without noise.

    Args:
        steps: Number of steps, at most those of the training.
        settings: What `stated` returns.

    Raises:
        ValueError: For more steps than those of the training.
    """
    count = settings["steps"]
    if steps > count:
        raise ValueError(f"`steps` must be at most {count}, those of the training. Received: steps={steps}")
    alphas = np.cumprod(1 - _betas(settings))  # Ho et al. 2020 (arXiv:2006.11239), section 2
    times = (np.arange(steps) * (count // steps))[::-1]
    before = times - count // steps
    now, then = alphas[times], np.where(before < 0, 1.0, alphas[np.maximum(before, 0)])
    keep = np.sqrt(then / now)
    add = np.sqrt(1 - then) - keep * np.sqrt(1 - now)
    return Schedule(*(tuple(map(float, values)) for values in (times, keep, add)))


def of(metadata, steps):
    """Returns the `Schedule` of a model with these metadata, in a number of steps."""
    return noise(steps, metadata[SCHEDULE]) if metadata.get(SCHEDULE) else flow(steps, metadata.get(SHIFT, 1.0))


def stated(config):
    """Returns what diffusers' `scheduler_config.json` says of a training, a dictionary of plain values.

    Args:
        config: Content of the file.

    Returns:
        `"steps"`, `"betas"`, one of `BETAS`, `"beta_start"` and `"beta_end"`.

    Raises:
        ValueError: For a model that predicts something else than noise, or values that are none.
    """
    config = {**USUAL, **config}
    other = [f"{name}={config[name]!r}" for name, usual in COMPUTED.items() if config.get(name, usual) != usual]
    if config.get("clip_sample", config.get("_class_name") in CLIPS):
        other.append("clip_sample=True")
    other += [] if config["beta_schedule"] in BETAS else [f"beta_schedule={config['beta_schedule']!r}"]
    if other:
        raise ValueError(f"The noise of a model with {', '.join(other)} is not known here. Received: such a scheduler")
    count, *ends = (config[name] for name in ("num_train_timesteps", "beta_start", "beta_end"))
    numbers = type(count) is int and count > 0 and all(isinstance(end, float) and 0 < end < 1 for end in ends)
    if not numbers or not all(map(math.isfinite, ends)):
        raise ValueError(f"A scheduler needs a number of steps, and betas between 0 and 1. Received: {count}, {ends}")
    return {"steps": count, "betas": config["beta_schedule"], "beta_start": ends[0], "beta_end": ends[1]}


def _betas(settings):
    """Returns how much noise each step of the training adds, float64 `(steps,)`."""
    start, end, count = settings["beta_start"], settings["beta_end"], settings["steps"]
    if settings["betas"] == "scaled_linear":
        return np.linspace(math.sqrt(start), math.sqrt(end), count) ** 2
    return np.linspace(start, end, count)
