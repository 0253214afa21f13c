"""The frameworks that are measured: each a function from a shape to a step that is done when it returns.

A step takes nothing: it runs the model on one batch in memory, forward, or forward, backward and AdamW.
"""

import functools
import pathlib
import sys

import numpy as np

SIDE = 2048  # of the matrices whose product is the peak


def _policy(precision, training):
    """Trained weights stay in float32; a model that infers has them in the precision that it computes in."""
    return f"mixed_{precision}" if training and precision != "float32" else precision


def keras_vit(shape, training, batch, precision, jit=True):
    from keras_vit import count_macs

    model = _our_model(shape, _policy(precision, training))
    return _keras_step(model, shape, training, batch, jit), count_macs(model)


def _our_model(shape, dtype):
    import keras_vit

    sizes = {}
    if not shape.variant:
        sizes = dict(width=shape.width, depth=shape.depth, num_heads=shape.heads, mlp_dim=shape.mlp)
        sizes |= dict(patch_size=shape.patch, channels=shape.channels, pooling=shape.pooling)
    return keras_vit.vit(shape.variant, image_size=shape.image, num_classes=shape.classes, dtype=dtype, **sizes)


def predictor(shape, training, batch, precision):
    """OpenVINO, as `keras_vit.predictor` calls it."""
    if training:
        raise NotImplementedError("A predictor does not train.")
    from keras_vit import predictor

    fast, (images, _) = predictor(_our_model(shape, "float32"), "openvino", precision), _batch(shape, batch)
    return lambda: fast(images), None


def keras_hub(shape, training, batch, precision, jit=True):
    import keras
    import keras_hub

    if shape.variant:
        raise NotImplementedError(f"KerasHub has no {shape.variant}.")
    backbone = keras_hub.models.ViTBackbone(
        image_shape=(shape.image, shape.image, shape.channels),
        patch_size=shape.patch,
        num_layers=shape.depth,
        num_heads=shape.heads,
        hidden_dim=shape.width,
        mlp_dim=shape.mlp,
        use_class_token=shape.pooling == "token",
        dtype=_policy(precision, training),
    )
    x = backbone.outputs[0]
    x = x[:, 0] if shape.pooling == "token" else keras.ops.mean(x, axis=1)
    model = keras.Model(backbone.inputs[0], keras.layers.Dense(shape.classes, dtype="float32")(x))
    return _keras_step(model, shape, training, batch, jit), None


def _keras_step(model, shape, training, batch, jit):
    import keras

    images, labels = _batch(shape, batch)
    x, y = keras.ops.convert_to_tensor(images), keras.ops.convert_to_tensor(labels)
    if training:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.AdamW(1e-4, weight_decay=0.05), loss, jit_compile=jit)
        return lambda: model.train_on_batch(x, y)
    if keras.backend.backend() == "jax":
        import jax

        values = [
            [v.value for v in variables] for variables in (model.trainable_variables, model.non_trainable_variables)
        ]
        run = jax.jit(lambda *inputs: model.stateless_call(*inputs, training=False)[0])
        return lambda: np.asarray(run(*values, x))
    import tensorflow as tf

    run = tf.function(lambda x: model(x, training=False), jit_compile=jit)
    return lambda: run(x).numpy()


def timm(shape, training, batch, precision, compiled=False):
    timm = _import_timm()
    if shape.variant:
        model = timm.create_model("vit_small_r26_s32_224", num_classes=shape.classes)
    else:
        model = timm.models.VisionTransformer(
            img_size=shape.image,
            patch_size=shape.patch,
            in_chans=shape.channels,
            num_classes=shape.classes,
            global_pool={"token": "token", "gap": "avg"}[shape.pooling],
            class_token=shape.pooling == "token",
            fc_norm=False,
            embed_dim=shape.width,
            depth=shape.depth,
            num_heads=shape.heads,
            mlp_ratio=shape.mlp / shape.width,
        )
    return _torch_step(model, lambda model, x: model(x), shape, training, batch, precision, compiled), None


def huggingface(shape, training, batch, precision, compiled=False):
    _import_timm()  # which mends what transformers stumbles over too
    import transformers

    if shape.variant:
        raise NotImplementedError(f"Hugging Face has no {shape.variant}.")
    config = transformers.ViTConfig(
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        intermediate_size=shape.mlp,
        image_size=shape.image,
        patch_size=shape.patch,
        num_channels=shape.channels,
        num_labels=shape.classes,
        attn_implementation="sdpa",
    )
    model = transformers.ViTForImageClassification(config)
    return _torch_step(model, lambda model, x: model(x).logits, shape, training, batch, precision, compiled), None


def _import_timm():
    sys.path.append(str(pathlib.Path(__file__).parents[1]))
    from timm_alone import import_timm

    return import_timm()


def _torch_step(model, call, shape, training, batch, precision, compiled):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels = _batch(shape, batch)
    x = torch.tensor(images.transpose(0, 3, 1, 2) / 127.5 - 1, device=device)
    y = torch.tensor(labels, dtype=torch.int64, device=device)
    model = model.to(device).train(training)
    run = torch.compile(model) if compiled else model
    cast = functools.partial(torch.autocast, device, torch.bfloat16, enabled=precision == "bfloat16")
    if not training:

        def infer():
            with torch.inference_mode(), cast():
                return call(run, x).float().cpu()

        return infer
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.05, fused=True)

    def train():
        optimizer.zero_grad(set_to_none=True)
        with cast():
            loss = torch.nn.functional.cross_entropy(call(run, x).float(), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return train


def gemm_torch(shape, training, batch, precision):
    """The machine's own peak: one product of square matrices."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(SIDE, SIDE, device=device, dtype=getattr(torch, precision)) for _ in range(2))
    return lambda: float((a @ b)[0, 0]), SIDE**3 / batch


def gemm_keras(shape, training, batch, precision):
    """The same by TensorFlow without XLA, which is oneDNN on a CPU, or by JAX."""
    import keras

    a, b = (keras.random.normal((SIDE, SIDE), dtype=precision) for _ in range(2))
    return lambda: float(keras.ops.matmul(a, b)[0, 0]), SIDE**3 / batch


def _batch(shape, batch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (batch, shape.image, shape.image, shape.channels)).astype("float32")
    return images, rng.integers(0, shape.classes, batch).astype("int32")


PEERS = {
    #                     function, its options, what it needs
    "keras_vit":         (keras_vit, {}, "keras"),
    "keras_vit, no XLA": (keras_vit, {"jit": False}, "keras"),
    "predictor":         (predictor, {}, "keras"),
    "KerasHub":          (keras_hub, {}, "keras"),
    "KerasHub, no XLA":  (keras_hub, {"jit": False}, "keras"),
    "timm":              (timm, {}, "torch"),
    "timm compile":      (timm, {"compiled": True}, "torch"),
    "Hugging Face":      (huggingface, {}, "torch"),
    "GEMM, PyTorch":     (gemm_torch, {}, "torch"),
    "GEMM, Keras":       (gemm_keras, {}, "keras"),
}  # fmt: skip
