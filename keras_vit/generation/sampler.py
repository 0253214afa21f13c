"""From noise to images: what a DiT predicts, integrated over time."""

import functools

import keras
import numpy as np
from keras import ops

from keras_vit.models import schedules
from keras_vit.models.dit import INPUTS, TEXT_INPUTS, none_of
from keras_vit.models.inputs import metadata_of

METHODS = {"euler": 1, "heun": 2}  # velocities that a step needs


class Sampler(keras.Model):
    """Draws a fixed number of images in a fixed number of steps, as one loop that can be compiled.

    `x` goes from noise to an image, as its schedule says: by `dx = v(x, t) dt` from time 0 to 1 (Liu et al. 2023,
    arXiv:2209.03003), or against the steps in which noise was added (`schedules.noise`). Its inputs are `noise`,
    `(count, height, width, channels)`; `asked`, labels, `(count,)`, or ids of texts, `(count, length)`; and `guidance`,
    `(count,)`. Its output is the images, -1 to 1, or latents, float32; with `path`, `(count, steps + 1, ...)` from the
    noise to them.

    Args:
        model: A model from `dit` that gives velocities, or noise.
        schedule: A `schedules.Schedule`.
        guided: Whether `guidance` matters: each velocity is then that without a class or a text, plus `guidance` times
            the difference to that with it (Ho and Salimans 2022, arXiv:2207.12598). Both are computed in one call.
        method: `"euler"`, or `"heun"`, whose steps but the last are corrected by a second velocity (Karras et al. 2022,
            arXiv:2206.00364, algorithm 1).
        path: Whether to return all steps.
    """

    def __init__(self, model, schedule, guided, method="euler", path=False):
        super().__init__(name="sampler", dtype="float32")  # whatever the model's policy, or the global one
        self.model = model
        self.schedule = schedule
        self.steps = len(schedule.times)
        self.guided = guided
        self.method = method
        self.whole = path

    def call(self, inputs):
        x, asked = ops.cast(inputs["noise"], "float32"), inputs["asked"]
        guidance, none = (inputs["guidance"], none_of(self.model)) if self.guided else (None, None)
        velocity = functools.partial(velocity_of, self.network, asked, none, guidance)
        step = functools.partial(moved, velocity, self.schedule)
        corrected = self.method == "heun"
        if not self.whole:
            x = ops.fori_loop(0, self.steps - 1, functools.partial(step, corrected=corrected), x)
            return step(self.steps - 1, x)

        def kept(i, state):
            x = step(i, state[0], corrected=corrected)
            return x, ops.slice_update(state[1], (i + 1, 0, 0, 0, 0), x[None])

        states = ops.pad(x[None], ((0, self.steps), *((0, 0),) * 4))  # (steps + 1, count, height, width, channels)
        x, states = ops.fori_loop(0, self.steps - 1, kept, (x, states))
        states = ops.slice_update(states, (self.steps, 0, 0, 0, 0), step(self.steps - 1, x)[None])
        return ops.transpose(states, (1, 0, 2, 3, 4))

    def network(self, inputs):
        return self.model(inputs, training=False)


def velocity_of(network, asked, none, guidance, x, time):
    """Returns the velocity of images at a time, `(count, height, width, channels)`, float32.

    Args:
        network: Function from a dictionary of a DiT's inputs to its output.
        asked: Labels, `(count,)`, or ids of texts, `(count, length)`, integers.
        none: What means no class, or no text, as `none_of` returns it.
        guidance: `(count,)`, or `None` for the velocity of what is asked for alone.
        x: The images on their way, `(count, height, width, channels)`.
        time: A number from 0 to 1, or a tensor of one.
    """
    names = INPUTS if len(asked.shape) == 1 else TEXT_INPUTS
    count, channels = x.shape[0], x.shape[-1]
    times = ops.full((count,), 1.0) * ops.cast(time, "float32")
    if guidance is None:
        return ops.cast(network(dict(zip(names, (x, times, asked)))), "float32")[..., :channels]
    both = (ops.concatenate([each, each]) for each in (x, times))
    asked = ops.cast(asked, "int32")
    asked = ops.concatenate([asked, ops.broadcast_to(ops.cast(none, "int32"), asked.shape)])
    v = ops.cast(network(dict(zip(names, (*both, asked)))), "float32")[..., :channels]
    return guided(v[:count], v[count:], ops.reshape(guidance, (-1, 1, 1, 1)))


def guided(of_class, of_none, guidance):
    """Returns the velocity that leads `guidance` times as far from that without a class as that of the class."""
    return of_none + guidance * (of_class - of_none)


def moved(velocity, schedule, i, x, corrected=False):
    """Returns images after the step `i` of a schedule; `corrected` by what is predicted at its end."""
    times, keep, add = (ops.convert_to_tensor(np.float32(values)) for values in schedule)
    times, keep, add = ops.append(times, times[-1:]), ops.take(keep, i), ops.take(add, i)
    first = velocity(x, ops.take(times, i))
    if not corrected:
        return keep * x + add * first
    second = velocity(keep * x + add * first, ops.take(times, i + 1))
    return keep * x + add / 2 * (first + second)


@functools.lru_cache(maxsize=2)
def compiled(model, state, count, schedule, guided, method="euler", path=False):
    """Returns the same compiled `Sampler` for the same arguments; `count` images are drawn at once.

    Args:
        model: As in `Sampler`.
        state: What identifies the model's variables: LoRA and quantization make others, for which it is traced again.
        count: Number of images.
        schedule: As in `Sampler`.
        guided: As in `Sampler`.
        method: As in `Sampler`.
        path: As in `Sampler`.
    """
    sampler = Sampler(model, schedule, guided, method, path)
    sampler.compile(jit_compile=keras.backend.backend() != "torch")
    return sampler


def drawn(model, noise, asked, steps, guidance, method="euler", path=False, batch_size=64):
    """Returns the images of noise, float32, -1 to 1, as `Sampler` does; `noise` and `asked` are arrays.

    Batches are filled up, so that each is compiled once.
    """
    size, parts = min(batch_size, len(noise)), []
    state = tuple(map(id, model.variables))
    schedule = schedules.of(metadata_of(model), steps)
    sampler = compiled(model, state, size, schedule, guidance != 1, method, path)
    for first in range(0, len(noise), size):
        inputs = {"noise": noise[first : first + size], "asked": asked[first : first + size].astype("int32")}
        count = len(inputs["noise"])
        inputs = {k: np.concatenate([v, np.repeat(v[-1:], size - count, axis=0)]) for k, v in inputs.items()}
        inputs["guidance"] = np.full(size, guidance, "float32")
        parts.append(keras.ops.convert_to_numpy(sampler.predict_on_batch(inputs))[:count])
    return np.concatenate(parts)


def by_steps(network, none, noise, asked, steps, guidance, shift=1.0):
    """Returns the images of noise, as `drawn` with Euler's method, by a function from a DiT's inputs to its output.

    For an exported model: the loop is in Python. `shift` is as in `schedules.shifted`.
    """
    x, asked = np.asarray(noise, "float32"), np.asarray(asked, "int32")
    names = INPUTS if asked.ndim == 1 else TEXT_INPUTS
    both, count = guidance != 1, len(x)
    given = np.concatenate([asked, np.broadcast_to(np.int32(none), asked.shape)]) if both else asked
    times, _, add = schedules.flow(steps, shift)
    for time, part in zip(times, add, strict=True):
        images = np.concatenate([x, x]) if both else x
        now = np.full(len(images), time, "float32")
        v = np.asarray(network(dict(zip(names, (images, now, given)))))[..., : x.shape[-1]]
        v = guided(v[:count], v[count:], guidance) if both else v
        x = x + np.float32(part) * v
    return x
