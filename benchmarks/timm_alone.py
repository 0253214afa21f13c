"""timm beside a torch that its torchvision was not built for."""

import contextlib
import sys

import torch


def import_timm():
    """Returns timm: its imports name two operators of torchvision's, which it never calls for a ViT."""
    if "torchvision" not in sys.modules:
        with contextlib.suppress(RuntimeError):  # they are there
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm

    return timm
