"""Detectors and segmenters of transformers at their published sizes, with random weights, and photographs for them."""

import math

import numpy as np
import torch
import transformers
from transformers.models.rf_detr.image_processing_rf_detr import RfDetrImageProcessor

# side, patch, windows, layers of the decoder, queries, masks
RF_DETR = {
    "nano": (384, 16, 2, 2, 300, False),
    "small": (512, 16, 2, 3, 300, False),
    "medium": (576, 16, 2, 4, 300, False),
    "base": (560, 14, 4, 3, 300, False),
    "large": (704, 16, 2, 4, 300, False),
    "seg nano": (312, 12, 1, 4, 100, True),
    "seg small": (384, 12, 2, 4, 100, True),
    "seg medium": (432, 12, 2, 5, 200, True),
    "seg large": (504, 12, 2, 5, 200, True),
    "seg xlarge": (624, 12, 2, 6, 300, True),
    "seg 2xlarge": (768, 12, 2, 6, 300, True),
}
# Places that hang less on queries: else they multiply roundings from layer to layer.
RF_DETR_FACTORS = (
    ("bbox_embed.layers.2", 0.25),
    ("query_features_proj", 0.3),
    ("class_embed", 2.0),
    ("sampling_offsets.weight", 0.1),
)
TOWERS = {  # width, heads, depth, width of the text tower and its heads
    "base": (768, 12, 12, 512, 8),
    "large": (1024, 16, 24, 768, 12),
}
OWL = {  # version, tower, side, patch
    "OWL-ViT B/32": (1, "base", 768, 32),
    "OWL-ViT B/16": (1, "base", 768, 16),
    "OWL-ViT L/14": (1, "large", 840, 14),
    "OWLv2 B/16": (2, "base", 960, 16),
    "OWLv2 L/14": (2, "large", 1008, 14),
}
DINO = {"small": (384, 6, 12, 3), "base": (768, 12, 12, 3), "large": (1024, 16, 24, 4)}  # width, heads, depth, last
DINO["giant"] = (1536, 24, 40, 5)  # with SwiGLU
EOMT = {  # side, queries, classes
    "semantic": (512, 100, 150),
    "instance": (640, 200, 80),
    "panoptic": (640, 200, 133),
}
CLIPSEG = {"rd64-refined": (64, True), "rd64": (64, False), "rd16": (16, False)}  # width of the decoder, refined
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def photos(every=True):
    """Returns photographs: a wide one; with `every` also a high one, and one larger than all models' images."""
    from sklearn.datasets import load_sample_images

    wide, flower = (np.array(image) for image in load_sample_images().images)
    if not every:
        return (wide,)
    row = np.concatenate([wide, flower, wide[:, ::-1]], axis=1)  # (427, 1920, 3)
    return wide, np.ascontiguousarray(flower[:, 170:470]), np.concatenate([row, row[::-1], row[:, ::-1]])


def randomized(model, factors=(), seed=0):
    """Gives all weights random numbers, so that nothing passes by being 0 or 1.

    Args:
        model: A model.
        factors: Pairs of a part of a name and what its numbers are multiplied by.
        seed: Of the numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.randn(value.shape, generator=generator)
            if value.ndim == 0:
                value.copy_(1.3 + 0.2 * noise)
            elif "lambda" in name or (value.ndim == 1 and name.endswith("weight")):  # layer scale, normalization
                value.copy_(1 + 0.2 * noise)
            elif value.ndim == 1 or any(part in name for part in ("token", "position", "refpoint", "class_embedding")):
                value.copy_(0.2 * noise)
            else:
                value.copy_(noise / math.sqrt(value[0].numel()))
            for part, factor in factors:
                if part in name:
                    value.mul_(factor)
    return model.eval()


def rf_detr(size, seed=0):
    """Returns RF-DETR of a size, a key of `RF_DETR`, and its processor."""
    side, patch, windows, depth, queries, masks = RF_DETR[size]
    stages = (2, 5, 8, 11) if size == "base" else (3, 6, 9, 12)
    backbone = dict(
        model_type="rf_detr_dinov2", hidden_size=384, num_attention_heads=6, num_hidden_layers=12, patch_size=patch,
        image_size=518 if size == "base" else side, num_windows=windows, out_features=[f"stage{i}" for i in stages],
    )  # fmt: skip
    config = transformers.RfDetrConfig(
        backbone_config=backbone, decoder_layers=depth, decoder_n_points=2, num_queries=queries, num_labels=91
    )
    kind = transformers.RfDetrForInstanceSegmentation if masks else transformers.RfDetrForObjectDetection
    processor = RfDetrImageProcessor(size={"height": side, "width": side})
    return randomized(kind(config), RF_DETR_FACTORS, seed), processor


def owl(size, seed=0):
    """Returns OWL-ViT or OWLv2 of a size, a key of `OWL`, and its processors: torchvision's, and Pillow's."""
    version, tower, side, patch = OWL[size]
    width, heads, depth, text, text_heads = TOWERS[tower]
    prefix = {1: "OwlViT", 2: "Owlv2"}[version]
    config = getattr(transformers, f"{prefix}Config")(
        projection_dim=text,
        text_config=dict(hidden_size=text, num_attention_heads=text_heads, intermediate_size=4 * text),
        vision_config=dict(
            hidden_size=width, num_attention_heads=heads, num_hidden_layers=depth, intermediate_size=4 * width,
            image_size=side, patch_size=patch,
        ),
    )  # fmt: skip
    factors = (("box_head.dense2", 0.6), ("class_head.logit_shift", 0.5), ("class_head.logit_scale", 2.0))
    model = randomized(getattr(transformers, f"{prefix}ForObjectDetection")(config), factors, seed)
    sides = {"size": {"height": side, "width": side}}
    return model, *(getattr(transformers, f"{prefix}ImageProcessor{kind}")(**sides) for kind in ("", "Pil"))


def eomt(size, kind, depth=None, seed=0):
    """Returns EoMT of a size, a key of `DINO`, for a kind of `EOMT`, and its processors as `owl`."""
    (width, heads, whole, last), (side, queries, classes) = DINO[size], EOMT[kind]
    config = transformers.EomtConfig(
        hidden_size=width, num_attention_heads=heads, num_hidden_layers=depth or whole, num_blocks=last,
        image_size=side, num_queries=queries, num_labels=classes, use_swiglu_ffn=size == "giant",
    )  # fmt: skip
    factors = (("class_predictor.weight", 6.0), ("mask_head.fc3", 2.0), ("query.weight", 20.0))
    model = randomized(transformers.EomtForUniversalSegmentation(config), factors, seed)
    model.attn_mask_probs.fill_(0.0)  # as in published files, whose masks of attention were annealed
    semantic = kind == "semantic"
    options = dict(
        size={"shortest_edge": side, "longest_edge": None if semantic else side},
        do_split_image=semantic, do_pad=not semantic,
    )  # fmt: skip
    return model, *(getattr(transformers, f"EomtImageProcessor{each}")(**options) for each in ("", "Pil"))


def clipseg(size, seed=0):
    """Returns CLIPSeg of a size, a key of `CLIPSEG`, and its processors as `owl`."""
    width, refined = CLIPSEG[size]
    config = transformers.CLIPSegConfig(
        vision_config={"patch_size": 16}, reduce_dim=width, use_complex_transposed_convolution=refined
    )
    model = randomized(transformers.CLIPSegForImageSegmentation(config), seed=seed)
    options = dict(size={"height": 352, "width": 352}, **IMAGENET)
    return model, *(getattr(transformers, f"ViTImageProcessor{kind}")(**options) for kind in ("", "Pil"))


def texts(count, length, seed=0):
    """Returns ids of texts of different lengths, with CLIP's beginning and end, int64 `(count, length)`."""
    rng = np.random.default_rng(seed)
    ids = np.zeros((count, length), "int64")
    for i, row in enumerate(ids):
        words = 2 + i % (length - 3)
        row[: words + 2] = 49406, *rng.integers(1, 49406, words), 49407
    return ids


def clear(stages, run, images, count):
    """Draws the layer that scores proposals until no order of the best ones hangs on the last digits.

    Args:
        stages: The layer of RF-DETR that has both stages.
        run: Function of prepared images, which calls it.
        images: Prepared images.
        count: Number of queries.
    """
    layer, kept = stages.enc_out_class_embed[0], []
    hook = stages.enc_output_norm[0].register_forward_hook(lambda _, inputs, output: kept.append(output))
    with torch.no_grad():
        for x in images:
            run(x)
        hook.remove()
        draws = (torch.randn(layer.weight.shape, generator=torch.Generator().manual_seed(i)) / 8 for i in range(60))
        layer.weight.copy_(
            max(draws, key=lambda draw: min(_gap((x @ draw.T + layer.bias).max(-1).values, count) for x in kept))
        )


def _gap(scores, count):
    """Returns the least difference of neighbors among the best scores; cells that are no proposals are all alike."""
    different = torch.unique(scores)[-count - 1 :]
    return float((different[1:] - different[:-1]).min())
