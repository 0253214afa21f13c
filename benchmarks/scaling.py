"""What training takes: memory of a device and bytes sent a step, for the sizes from B/16 to G/14 at 224 pixels.

KERAS_BACKEND=jax python benchmarks/scaling.py

Nothing is computed: JAX says which arrays the backward pass keeps, from shapes alone. With fused attention these are
counted for a stand-in of a GPU's kernel, which keeps query, key, value, output and a number a query.
"""

import collections
import contextlib
import json
import math
from unittest import mock

from checkout import commit

NAMES = ("B/16", "L/16", "H/14", "g/14", "G/14")
DEVICE = 80e9  # bytes
LINKS = {"450 GB/s": 450e9, "50 GB/s": 50e9, "12.5 GB/s": 12.5e9}


def arrays(name, depth, remat, dtype, images=2):
    """Returns how often the backward pass keeps an array of each shape and type, weights aside."""
    import jax
    import keras

    import keras_vit
    from keras_vit.models.remat import rematerialized
    from keras_vit.utils.keras_private import shapes_only

    def build():
        with rematerialized() if remat else contextlib.nullcontext():
            return keras_vit.vit(name, depth=depth, dtype=dtype)

    model = shapes_only(build)
    like = lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype)  # noqa: E731
    trained, other = ([like(v) for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables))
    batch = jax.ShapeDtypeStruct((images, *model.input_shape[1:]), "float32")

    def backward(trained, other, batch):
        return jax.vjp(lambda w: keras.ops.sum(model.stateless_call(w, other, batch, training=True)[0]), trained)[1]

    found = collections.Counter(
        (array.shape, str(array.dtype)) for array in jax.tree.leaves(jax.eval_shape(backward, trained, other, batch))
    )
    weights = {(v.shape, str(v.dtype)) for v in trained} | {(v.shape, dtype.removeprefix("mixed_")) for v in trained}
    return collections.Counter({array: count for array, count in found.items() if array not in weights})


def size_of(found):
    """Returns the bytes of such arrays."""
    import jax.numpy as jnp

    return sum(math.prod(shape) * jnp.dtype(dtype).itemsize * count for (shape, dtype), count in found.items())


def kept(name, depth, remat, dtype):
    """Returns the bytes that the backward pass keeps of an image, weights aside."""
    return size_of(arrays(name, depth, remat, dtype)) // 2


def fused():
    """Makes attention keep what a GPU's kernel keeps."""
    import jax
    import jax.numpy as jnp

    from keras_vit.layers.attention import attend

    @jax.custom_vjp
    def kernel(query, key, value):
        return query + key + value

    def forward(query, key, value):
        return kernel(query, key, value), (query, key, value, query * key, jnp.zeros(query.shape[:3], "float32"))

    kernel.defvjp(forward, lambda kept, upstream: (upstream,) * 3)
    return mock.patch.object(attend, "_kernel", lambda query, key, value, *_: kernel(query, key, value))


def by_array(name, dtype, images):
    """Returns what a block keeps of a batch, in GB, by the shapes of its arrays."""
    with fused():
        block = arrays(name, 3, False, dtype, images) - arrays(name, 2, False, dtype, images)
    sizes = {
        f"{count} x {shape} {kind}": size_of({(shape, kind): count}) / 1e9 for (shape, kind), count in block.items()
    }
    return {key: round(size, 3) for key, size in sorted(sizes.items(), key=lambda pair: -pair[1])}


def row(size, dtype):
    one, block = {}, {}
    for remat in (False, True):
        two, three = (kept(size.name, depth, remat, dtype) for depth in (2, 3))
        block[remat] = three - two
        one[remat] = two + (size.depth - 2) * block[remat]
    one[True] += block[False]  # of the block that is computed again
    with fused():
        two, three = (kept(size.name, depth, False, dtype) for depth in (2, 3))
    by_kernel = two + (size.depth - 2) * (three - two)
    tokens = (224 // int(size.name.split("/")[1])) ** 2 + 1
    state = 16 * size.parameters
    ema = 4 * size.parameters
    return {
        "parameters": size.parameters,
        "GMACs": round(size.gmacs, 1),
        "weights, gradients, moments (GB)": round(state / 1e9, 2),
        "moving average (GB)": round(ema / 1e9, 2),
        "an image (MB)": round(one[False] / 1e6, 1),
        "an image, remat (MB)": round(one[True] / 1e6, 1),
        "an image, fused attention (MB)": round(by_kernel / 1e6, 1),
        "images on 80 GB": int((DEVICE - state - ema) // one[False]),
        "images on 80 GB, remat": int((DEVICE - state - ema) // one[True]),
        "sum of gradients (GB)": round(4 * size.parameters / 1e9, 2),
        "its time (ms)": {name: round(2 * 4e3 * size.parameters / speed, 1) for name, speed in LINKS.items()},
        "split weights, sent an image (MB)": round(4 * size.depth * tokens * size.width * 2 / 1e6, 1),
    }


def main():
    import jax
    import keras

    import keras_vit

    sizes = {size.name: size for size in keras_vit.list_variants()}
    found = {dtype: {name: row(sizes[name], dtype) for name in NAMES} for dtype in ("float32", "mixed_bfloat16")}
    versions = {"keras": keras.__version__, "jax": jax.__version__}
    found["a block of B/16, 256 images, fused attention (GB)"] = by_array("B/16", "mixed_bfloat16", 256)
    print(json.dumps({**found, "commit": commit(), "device": "none", "versions": versions}, indent=2))


if __name__ == "__main__":
    main()
