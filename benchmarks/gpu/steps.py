"""The frameworks that are measured: functions from a piece to a loop of steps, multiply-adds an image, and peak memory.

All compute in bfloat16, train with AdamW on float32 weights, and have their batch on the device.
"""

import contextlib

import numpy as np

SIZES = {  # width, depth, heads, MLP
    "Ti/16": (192, 12, 3, 768),
    "S/16": (384, 12, 6, 1536),
    "B/16": (768, 12, 12, 3072),
    "L/16": (1024, 24, 16, 4096),
}
CLASSES = 1000


def sizes(piece):
    return (64, 2, 2, 128) if piece.get("rehearse") else SIZES[piece["variant"]]


def _batch(piece):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (piece["images"], piece["image"], piece["image"], 3)).astype("float32")
    return images, rng.integers(0, CLASSES, piece["images"]).astype("int32")


def _model(piece):
    import keras

    import keras_vit
    from keras_vit.models.remat import rematerialized

    (keras.config.enable_flash_attention if piece.get("flash", True) else keras.config.disable_flash_attention)()
    keras.utils.clear_session()
    width, depth, heads, mlp = sizes(piece)
    shape = dict(width=width, depth=depth, num_heads=heads, mlp_dim=mlp, patch_size=16, image_size=piece["image"])
    shape |= {"block": {"gelu": "exact"}, "pooling": piece.get("pooling", "token")}  # as timm and Flax
    dtype = "mixed_bfloat16" if piece["training"] else "bfloat16"
    with rematerialized() if piece.get("remat") else contextlib.nullcontext():
        model = keras_vit.vit(None, num_classes=CLASSES, dtype=dtype, **shape)
    return model, keras_vit.count_macs(model)


def _macs(piece):
    """Returns the multiply-adds of an image for a peer, without the memory of our model."""
    from keras_vit.utils.keras_private import shapes_only

    return shapes_only(lambda: _model(piece)[1])


def keras_vit(piece):
    """The compiled step alone, its state given back to it."""
    import jax
    import keras

    model, macs = _model(piece)
    x, y = (jax.device_put(array) for array in _batch(piece))
    weights, fixed = ([v.value for v in some] for some in (model.trainable_variables, model.non_trainable_variables))
    if not piece["training"]:
        call = Compiled(lambda weights, x: model.stateless_call(weights, fixed, x, training=False)[0])
        return _repeat(lambda: call(weights, x)), macs, call.memory
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.05)
    optimizer.build(model.trainable_variables)

    def step(weights, fixed, moments, x, y):
        def of(weights):
            logits, after = model.stateless_call(weights, fixed, x, training=True)
            return loss(y, logits), after

        (value, fixed_after), gradients = jax.value_and_grad(of, has_aux=True)(weights)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        return weights, fixed_after, moments, value

    step = Compiled(step, given=(0, 1, 2))
    state = [weights, fixed, [v.value for v in optimizer.variables]]  # the model's own arrays, which are given away

    def run(count):
        for _ in range(count):
            *state[:], value = step(*state, x, y)
        value.block_until_ready()

    return run, macs, step.memory


def keras_fit(piece):
    """`fit` as users call it, on a batch that is on the device."""
    import jax
    import keras

    model, macs = _model(piece)
    model.compile(
        keras.optimizers.AdamW(1e-4, weight_decay=0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    batch = tuple(jax.device_put(array) for array in _batch(piece))

    def run(count):
        model.fit((batch for _ in range(count)), steps_per_epoch=count, verbose=0)

    return run, macs, lambda: None  # that of the step


def flax(piece):
    import jax
    import optax
    from flax_vit import ViT

    macs = _macs(piece)
    width, depth, heads, mlp = sizes(piece)
    dtype = jax.numpy.float32 if piece["training"] else jax.numpy.bfloat16
    model = ViT(width, depth, heads, mlp, CLASSES, param_dtype=dtype)
    x, y = (jax.device_put(array) for array in _batch(piece))
    weights = jax.jit(model.init)(jax.random.key(0), x[:1])
    if not piece["training"]:
        call = Compiled(model.apply)
        return _repeat(lambda: call(weights, x)), macs, call.memory
    optimizer = optax.adamw(1e-4, weight_decay=0.05)

    def step(weights, moments, x, y):
        def of(weights):
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(weights, x), y).mean()

        value, gradients = jax.value_and_grad(of)(weights)
        updates, moments = optimizer.update(gradients, moments, weights)
        return optax.apply_updates(weights, updates), moments, value

    step, state = Compiled(step, given=(0, 1)), [weights, optimizer.init(weights)]

    def run(count):
        for _ in range(count):
            *state[:], value = step(*state, x, y)
        value.block_until_ready()

    return run, macs, step.memory


def timm(piece):
    import torch
    from timm.models import VisionTransformer

    class ToBfloat16(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.bfloat16)

    macs = _macs(piece)
    width, depth, heads, mlp = sizes(piece)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    shape = dict(embed_dim=width, depth=depth, num_heads=heads, mlp_ratio=mlp / width, num_classes=CLASSES)
    model = VisionTransformer(img_size=piece["image"], **shape).to(device).train(piece["training"])
    images, labels = _batch(piece)
    x = torch.tensor(images.transpose(0, 3, 1, 2) / 127.5 - 1, device=device).contiguous()
    y = torch.tensor(labels, dtype=torch.int64, device=device)

    if device == "cuda":  # what earlier pieces left
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch._dynamo.reset()
    backend = "eager" if piece.get("rehearse") else "inductor"  # C++ takes a minute for each

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def memory():
        return round(torch.cuda.max_memory_allocated() / 1e9, 2) if device == "cuda" else None

    if not piece["training"]:
        model, x = torch.compile(model.to(torch.bfloat16), backend=backend), x.to(torch.bfloat16)

        @torch.inference_mode()
        def infer(count):
            for _ in range(count):
                model(x)
            wait()

        return infer, macs, memory
    model.norm_pre = ToBfloat16()  # autocast adds float32 positions, after which all residuals would be float32
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.05, fused=True)
    compiled = torch.compile(model, backend=backend)

    def train(count):
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(compiled(x).float(), y)
            loss.backward()
            optimizer.step()
        wait()

    return train, macs, memory


def gemm_jax(piece):
    import jax

    side = 256 if piece.get("rehearse") else 8192
    a, b = (jax.random.normal(jax.random.key(i), (side, side), "bfloat16") for i in range(2))
    product = jax.jit(lambda a, b: a @ b)
    return _repeat(lambda: product(a, b)), side**3, lambda: None


def gemm_torch(piece):
    import torch

    side, device = 256 if piece.get("rehearse") else 8192, "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))

    def run(count):
        for _ in range(count):
            product = a @ b
        float(product[0, 0])

    return run, side**3, lambda: None


def _repeat(call):
    def run(count):
        for _ in range(count):
            out = call()
        out.block_until_ready()

    return run


class Compiled:
    """A function that is compiled for its first arguments, and says what memory it takes.

    Args:
        function: Function of JAX.
        given: Positions of arguments whose memory is used for outputs.
    """

    def __init__(self, function, given=()):
        import jax

        self.lowered = jax.jit(function, donate_argnums=given)
        self.compiled = None

    def __call__(self, *arguments):
        if self.compiled is None:
            self.compiled = self.lowered.lower(*arguments).compile()
        return self.compiled(*arguments)

    def memory(self):
        """Returns the bytes of arguments, outputs and what lies between, in GB; `None` where XLA does not say."""
        sizes = self.compiled.memory_analysis()
        if sizes is None:
            return None
        outputs = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        return round((sizes.argument_size_in_bytes + outputs + sizes.temp_size_in_bytes) / 1e9, 2)


PEERS = {
    "keras_vit": keras_vit,
    "keras_vit fit": keras_fit,
    "timm compile": timm,
    "Flax": flax,
    "GEMM, JAX": gemm_jax,
    "GEMM, PyTorch": gemm_torch,
}
