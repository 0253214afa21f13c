"""The recipe `cifar10` on a GPU: data, augmentation and whole epochs on the device, by JAX.

Crops, flips, erasing, and MixUp or CutMix, with the recipe's numbers; its RandAugment is left out, and all 50,000
training images are taken. The test set is looked at once, after the last epoch, by the averaged weights.
"""

import dataclasses
import io
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import keras_vit
from keras_vit.training import optimizers

KEEP = 15  # seconds between saved states: a call may end at any time


def train(piece):
    """Trains from the newest state of `piece["state"]`; returns test accuracy, minutes and epochs."""
    tiny = piece.get("rehearse")
    recipe = keras_vit.load_recipe("cifar10", {"model.dtype": "mixed_bfloat16"})
    if tiny:
        changes = {"model.width": 24, "model.depth": 1, "data.batch_size": 8, "optim.epochs": 2}
        recipe = keras_vit.load_recipe("cifar10", changes)
    (images, labels), test = _random() if tiny else _read(piece["files"])
    model, batch, optim = keras_vit.from_recipe(recipe), recipe.data.batch_size, recipe.optim
    steps = len(images) // batch
    optimizer = optimizers.make(dataclasses.replace(optim, ema=None), model.trainable_variables, steps)
    optimizer.build(model.trainable_variables)
    state = [
        [jnp.array(v.value) for v in some]
        for some in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    ]
    state.append([jnp.array(v) for v in state[0]])  # the averaged weights
    file, epoch, before, loss = pathlib.Path(piece["state"]), 0, 0.0, float("nan")
    if file.exists():
        state, epoch, before, loss = _restored(state, file)
    epoch_of = jax.jit(_epoch(model, optimizer, recipe, steps), donate_argnums=0)
    images, labels = jax.device_put(images), jax.device_put(labels)
    start = kept = time.perf_counter()
    while epoch < optim.epochs:
        state, loss = epoch_of(state, images, labels, jax.random.fold_in(jax.random.key(recipe.seed), epoch))
        loss, epoch = float(loss), epoch + 1
        if not np.isfinite(loss):
            raise RuntimeError(f"The loss became {loss} in epoch {epoch}.")
        if time.perf_counter() - kept > KEEP or epoch == optim.epochs:
            kept = time.perf_counter()
            _save(file, state, epoch, before + kept - start, loss)
    minutes = (before + time.perf_counter() - start) / 60
    accuracy = _accuracy(model, state, test, batch)
    return {"test_accuracy": round(accuracy, 4), "epochs": epoch, "minutes": round(minutes, 2), "loss": round(loss, 4)}


def _epoch(model, optimizer, recipe, steps):
    """Returns a function from (state, images, labels, key) to the state after an epoch, and its mean loss."""
    batch, classes, momentum = recipe.data.batch_size, recipe.model["num_classes"], recipe.optim.ema
    smoothing = recipe.task.label_smoothing

    def step(state, inputs, images, labels):
        weights, fixed, moments, average = state
        indices, key = inputs
        targets = jax.nn.one_hot(labels[indices], classes) * (1 - smoothing) + smoothing / classes
        x, targets = _augmented(images[indices], targets, recipe.augment, key)

        def of(weights):
            logits, after = model.stateless_call(weights, fixed, x, training=True)
            return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits.astype("float32")), -1)), after

        (loss, fixed_after), gradients = jax.value_and_grad(of, has_aux=True)(weights)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        average = [momentum * a + (1 - momentum) * w for a, w in zip(average, weights)]
        return [weights, fixed_after, moments, average], loss

    def epoch(state, images, labels, key):
        order = jax.random.permutation(key, len(images))[: steps * batch].reshape(steps, batch)
        keys = jax.random.split(jax.random.fold_in(key, 1), steps)
        state, losses = jax.lax.scan(lambda state, x: step(state, x, images, labels), state, (order, keys))
        return state, losses.mean()

    return epoch


def _augmented(images, targets, augment, key):
    """Returns a batch of float32 images and targets, with crops, flips, erasing, and MixUp or CutMix."""
    keys, side, pad = jax.random.split(key, 8), images.shape[1], augment.crop_padding
    x = jnp.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    corners = jax.random.randint(keys[0], (len(x), 2), 0, 2 * pad + 1)
    cut = jax.vmap(lambda image, corner: jax.lax.dynamic_slice(image, (*corner, 0), (side, side, 3)))
    x = cut(x, corners).astype("float32")
    x = jnp.where(jax.random.bernoulli(keys[1], 0.5, (len(x), 1, 1, 1)), x[:, :, ::-1], x)
    areas = jax.random.uniform(keys[2], (len(x),), minval=0.02, maxval=0.2)
    erased = _rectangles(keys[3], areas, side) & jax.random.bernoulli(keys[4], augment.erase, (len(x), 1, 1))
    x = jnp.where(erased[..., None], 0, x)
    alpha = jnp.array([augment.mixup, augment.cutmix])[jax.random.randint(keys[5], (), 0, 2)]
    share = jax.random.beta(keys[6], alpha, alpha)
    box = _rectangles(keys[7], jnp.broadcast_to(1 - share, (1,)), side)
    mixes = alpha == augment.mixup
    own = jnp.where(mixes, jnp.full((1, side, side), share), 1.0 - box)[..., None]  # of each pixel
    share = own.mean()
    return own * x + (1 - own) * x[::-1], share * targets + (1 - share) * targets[::-1]


def _rectangles(key, areas, side):
    """Returns masks, `(batch, side, side)`, of squares of such shares of the area, anywhere, cut at the border."""
    half = jnp.sqrt(areas)[:, None, None] * side / 2
    y, x = jax.random.uniform(key, (2, len(areas), 1, 1), maxval=side)
    place = jnp.arange(side) + 0.5
    return (jnp.abs(place[None, :, None] - y) < half) & (jnp.abs(place[None, None, :] - x) < half)


def _accuracy(model, state, test, batch):
    images, labels = test
    call = jax.jit(lambda x: model.stateless_call(state[3], state[1], x, training=False)[0].argmax(-1))
    found = [np.asarray(call(images[i : i + batch].astype("float32"))) for i in range(0, len(images), batch)]
    return float(np.mean(np.concatenate(found) == labels))


def _read(files):
    """Returns (images, labels) of training and of test, from files of `pack.py`."""
    splits = [[], []], [[], []]
    for file in files:
        part = np.load(file)
        ends = np.cumsum(part["sizes"])
        stored = part["bytes"].tobytes()
        for size, end, label, test in zip(part["sizes"], ends, part["labels"], part["test"]):
            images, labels = splits[int(test)]
            images.append(np.asarray(Image.open(io.BytesIO(stored[end - size : end])).convert("RGB")))
            labels.append(label)
    return [(np.stack(images), np.array(labels, "int32")) for images, labels in splits]


def _random():
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 256, (n, 32, 32, 3), "uint8"), rng.integers(0, 10, n).astype("int32")) for n in (64, 16)]


def _save(file, state, epoch, seconds, loss):
    arrays = {f"{i}/{k}": np.asarray(v) for i, part in enumerate(state) for k, v in enumerate(part)}
    new = file.with_suffix(".new.npz")
    np.savez(new, epoch=epoch, seconds=seconds, loss=loss, **arrays)
    new.replace(file)


def _restored(state, file):
    with np.load(file) as saved:
        state = [[jnp.asarray(saved[f"{i}/{k}"]) for k in range(len(part))] for i, part in enumerate(state)]
        return state, int(saved["epoch"]), float(saved["seconds"]), float(saved["loss"])
