"""timm beside a torch that its torchvision was not built for."""


def import_timm():
    """Returns timm: its imports name two operators of torchvision's, which it never calls for a ViT."""
    try:
        import timm
    except RuntimeError:  # the operators are not there
        import torch

        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import timm
    return timm
