"""What is measured: one piece a row, the most telling first."""

import itertools

IMAGES = {  # images a step: of training, of inference
    "Ti/16": (512, 1024),
    "S/16": (512, 1024),
    "B/16": (256, 512),
    "L/16": (128, 256),
}
KNOWN_PEAK = {  # TFLOP/s of dense products in bfloat16, from the makers' datasheets
    "NVIDIA H200": 989.4,
    "NVIDIA H100 80GB HBM3": 989.4,
    "NVIDIA A100-SXM4-40GB": 311.9,
    "NVIDIA A100-SXM4-80GB": 311.9,
}


def pieces():
    """Yields dictionaries: the arguments of `worker.py`."""
    yield {"peer": "GEMM, JAX"}
    yield {"peer": "GEMM, PyTorch"}
    for peer, training in itertools.product(("keras_vit", "timm compile", "Flax"), (True, False)):
        yield _speed(peer, "B/16", 224, training)
    yield _speed("keras_vit fit", "B/16", 224, True)
    yield _speed("keras_vit", "B/16", 224, True, flash=False)
    yield _speed("keras_vit", "B/16", 224, True, remat=True)
    yield _speed("keras_vit", "B/16", 224, True, pooling="gap")  # an even number of tokens, for fused attention
    yield {"peer": "CIFAR-10"}
    yield {**_speed("keras_vit", "S/16", 224, True), "images": 512, "steps": 200}  # what `imagenet_s16` trains
    rest = itertools.product(("S/16", "L/16", "Ti/16", "B/16"), (224, 384), (True, False))
    for (variant, image, training), peer in itertools.product(rest, ("keras_vit", "timm compile", "Flax")):
        if (variant, image) != ("B/16", 224):
            yield _speed(peer, variant, image, training)
    for variant, image in itertools.product(("B/16", "L/16"), (224, 384)):
        for options in ({"flash": False}, {"remat": True}):
            if (variant, image) != ("B/16", 224):
                yield _speed("keras_vit", variant, image, True, **options)
    for variant in ("B/16", "L/16"):
        yield _speed("keras_vit", variant, 384, False, flash=False)


def least(piece):
    """Returns the seconds below which a piece is not begun: it would be killed while it compiles."""
    long = piece["peer"] in ("CIFAR-10", "timm compile") or piece.get("variant") == "L/16"
    return 45 if piece.get("rehearse") or not long else 150


def _speed(peer, variant, image, training, **options):
    images = IMAGES[variant][0 if training else 1]
    row = {"peer": peer, "variant": variant, "image": image, "training": training, **options}
    return {**row, "images": images if image == 224 else images // 4}


def tiny(piece):
    """Returns a piece for a rehearsal: the same code, with two small blocks and two images."""
    small = {"rehearse": True, "images": 2, "image": piece.get("image", 0) // 112 * 16, "steps": 2}
    return {**piece, **small} if "variant" in piece else {**piece, "rehearse": True}
