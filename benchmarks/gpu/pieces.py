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
    """Yields dictionaries: the arguments of `worker.py`. Those of one framework follow each other: one process."""
    telling = [(variant, 224, training) for variant in ("B/16", "L/16", "S/16") for training in (True, False)]
    large = [(variant, 384, training) for variant in ("B/16", "L/16") for training in (True, False)]
    small = [("Ti/16", 224, True), ("Ti/16", 224, False), ("S/16", 384, True), ("S/16", 384, False)]
    yield {"peer": "GEMM, JAX"}
    yield from (_speed("keras_vit", *row) for row in telling)
    yield _speed("keras_vit fit", "B/16", 224, True)
    yield {"peer": "GEMM, PyTorch"}
    yield from (_speed("timm compile", *row) for row in telling)
    yield from (_speed("keras_vit", *row) for row in large)
    yield {"peer": "CIFAR-10"}
    for options in ({"pooling": "gap"}, {"flash": False}, {"remat": True}):
        yield _speed("keras_vit", "B/16", 224, True, **options)
    yield {**_speed("keras_vit", "S/16", 224, True), "images": 512, "steps": 200}  # what `imagenet_s16` trains
    yield from (_speed("Flax", *row) for row in telling + large)
    yield from (_speed("timm compile", *row) for row in large + small)
    yield from (_speed(peer, *row) for peer in ("keras_vit", "Flax") for row in small)
    for (variant, image, training), option in itertools.product(large, ("flash", "remat")):
        if training or option == "flash":
            yield _speed("keras_vit", variant, image, training, **{option: option == "remat"})


def framework(piece):
    """Returns what a piece computes with: pieces of one framework share a process."""
    return "torch" if "PyTorch" in piece["peer"] or "timm" in piece["peer"] else "jax"


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
