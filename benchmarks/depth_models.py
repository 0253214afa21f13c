"""Models of depth and poses of transformers, with random weights, at published widths and depth 2."""

import numpy as np
import torch
import transformers

TWO = dict(reassemble_factors=(2, 0.5))  # maps, of two blocks


def saved(model, folder):
    """Returns a model with random numbers for weights and statistics, whose files are in the folder."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2)
            elif value.dtype == torch.float32:
                one = "lambda1" in name or (name.endswith("weight") and value.ndim == 1)
                deviation = 0.1 if one else 0.03 if value.ndim < 4 else (2 / value[0].numel()) ** 0.5
                value.copy_(deviation * torch.randn(value.shape) + one)
            if name in ("head.conv3.bias", "head.head.4.bias"):
                value.fill_(1.0)
    model.save_pretrained(folder)
    return model.eval()


def depth_anything(folder, size="small", backbone=None, **options):
    width, heads, fused = {"small": (384, 6, 64), "base": (768, 12, 128), "large": (1024, 16, 256)}[size]
    neck = {"small": (48, 96), "base": (96, 192), "large": (256, 512)}[size]
    inner = dict(hidden_size=width, num_attention_heads=heads, num_hidden_layers=2, image_size=70, patch_size=14,
                 out_indices=[1, 2], reshape_hidden_states=False)  # fmt: skip
    config = transformers.DepthAnythingConfig(
        backbone_config=transformers.Dinov2Config(**{**inner, **(backbone or {})}),
        reassemble_hidden_size=width,
        **{**TWO, "neck_hidden_sizes": neck, "fusion_hidden_size": fused, **options},
    )
    return saved(transformers.DepthAnythingForDepthEstimation(config), folder)


def dpt(folder, **options):
    sizes = dict(hidden_size=1024, num_attention_heads=16, intermediate_size=4096, num_hidden_layers=2, image_size=96,
                 backbone_out_indices=[0, 1], neck_hidden_sizes=[256, 512], **TWO)  # fmt: skip
    return saved(transformers.DPTForDepthEstimation(transformers.DPTConfig(**{**sizes, **options})), folder)


def vitpose(folder, backbone=None, **options):
    inner = dict(hidden_size=384, num_attention_heads=12, num_hidden_layers=2)
    config = transformers.VitPoseConfig(
        backbone_config=transformers.VitPoseBackboneConfig(**{**inner, **(backbone or {})}), num_labels=17, **options
    )
    return saved(transformers.VitPoseForPoseEstimation(config), folder)


def answers(theirs, images):
    """Returns what a model makes of images that are normalized already, `(batch, height, width[, keypoints])`."""
    with torch.no_grad():
        out = theirs(torch.tensor(np.ascontiguousarray(images.transpose(0, 3, 1, 2))))
    return (out.predicted_depth if hasattr(out, "predicted_depth") else out.heatmaps.permute(0, 2, 3, 1)).numpy()
