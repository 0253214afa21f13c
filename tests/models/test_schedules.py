import numpy as np
import pytest

from keras_vit.models.schedules import SCHEDULE, flow, noise, of, shifted, stated
from tests.latents import NOISE

SETTINGS = {"steps": 1000, "betas": "linear", "beta_start": 1e-4, "beta_end": 0.02}


def ddim(x, answer, steps):
    """Song et al. 2021 (arXiv:2010.02502), equation 12 without noise, in its own words: the image, then less noise."""
    alphas = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
    stride = 1000 // steps
    for time in reversed(range(0, stride * steps, stride)):
        predicted, before = answer(x, time), alphas[time - stride] if time else 1.0
        image = (x - np.sqrt(1 - alphas[time]) * predicted) / np.sqrt(alphas[time])
        x = np.sqrt(before) * image + np.sqrt(1 - before) * predicted
    return x


@pytest.mark.parametrize("steps", [1, 4, 7, 1000])
def test_noise_is_removed_as_in_the_paper(steps):
    def answer(x, time):
        return np.tanh(x + time / 1000)

    x = np.random.default_rng(0).normal(size=20)
    expected, schedule = ddim(x, answer, steps), noise(steps, SETTINGS)
    for time, keep, add in zip(*schedule):
        x = keep * x + add * answer(x, time)
    np.testing.assert_allclose(x, expected, atol=1e-9)
    assert schedule.times[-1] == 0 and schedule.times[0] == (1000 // steps) * (steps - 1)


def test_an_image_of_known_noise_is_found_in_one_step_or_many():
    image, random = np.linspace(-1, 1, 9), np.random.default_rng(1).normal(size=9)
    for steps in (2, 50):
        schedule = noise(steps, SETTINGS)
        alpha = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))[int(schedule.times[0])]
        x = np.sqrt(alpha) * image + np.sqrt(1 - alpha) * random
        for _, keep, add in zip(*schedule):
            x = keep * x + add * random
        np.testing.assert_allclose(x, image, atol=1e-9)


def test_a_velocity_is_followed_in_equal_steps():
    assert flow(4) == ((0, 0.25, 0.5, 0.75), (1,) * 4, (0.25,) * 4)
    assert of({}, 4) == flow(4) and of({SCHEDULE: SETTINGS}, 4) == noise(4, SETTINGS)


def test_settings_of_diffusers():
    assert stated(NOISE) == SETTINGS == stated({"_class_name": "DPMSolverMultistepScheduler"})
    scaled = stated(NOISE | {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012})
    first = noise(1000, scaled).times[-1]
    assert first == 0 and scaled["betas"] == "scaled_linear"
    alphas = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2)
    np.testing.assert_allclose(noise(1000, scaled).keep[-1], 1 / np.sqrt(alphas[0]))


@pytest.mark.parametrize(
    "change",
    [
        {"prediction_type": "v_prediction"}, {"beta_schedule": "squaredcos_cap_v2"}, {"clip_sample": True},
        {"thresholding": True}, {"trained_betas": [0.1]}, {"rescale_betas_zero_snr": True},
    ],
)  # fmt: skip
def test_other_noise_is_refused(change):
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}".replace("[", r"\[")):
        stated(NOISE | change)


def test_what_clips_unless_it_says_otherwise():
    silent = {name: value for name, value in NOISE.items() if name != "clip_sample"}
    with pytest.raises(ValueError, match="clip_sample=True"):
        stated(silent)


@pytest.mark.parametrize("change", [{"num_train_timesteps": 0}, {"beta_end": 1.5}, {"beta_start": "a"}])
def test_damaged_settings(change):
    with pytest.raises(ValueError, match="needs a number of steps, and betas between 0 and 1. Received"):
        stated(NOISE | change)


def test_more_steps_than_the_training_had():
    with pytest.raises(ValueError, match="`steps` must be at most 1000, those of the training. Received: steps=1001"):
        noise(1001, SETTINGS)


def test_shifted_times():
    times = np.linspace(0, 1, 5)
    noise = 1 - times
    np.testing.assert_allclose(1 - shifted(times, 3.0), 3 * noise / (1 + 2 * noise))
    np.testing.assert_array_equal(shifted(times, 1), times)
