"""What Roboflow's own RF-DETR answers, of published sizes with random weights, and what ours reads from its `.pth`.

Needs rfdetr (1.11) with pydantic and pyDeprecate; `pip install --no-deps rfdetr` is enough, as only its model is used.
"""

import functools
import importlib.util
import pathlib
import sys
import types
from importlib.metadata import version

import golden_answers
import keras
import numpy as np
import object_models
import torch
from object_comparison import between, boxes, by_photo, freed, levels, nhwc, numbers, outputs

import keras_vit
from keras_vit.checkpoints.formats.coco import COCO
from keras_vit.models import box_outputs

SIZES = {"nano": "RFDETRNanoConfig", "base": "RFDETRBaseConfig", "seg small": "RFDETRSegSmallConfig"}


def roboflow(size):
    """Returns Roboflow's model of a size, its arguments, and its function from outputs to answers."""
    if "rfdetr" not in sys.modules:  # without the package's own imports, which want more than its models need
        package = types.ModuleType("rfdetr")
        package.__path__ = list(importlib.util.find_spec("rfdetr").submodule_search_locations)
        package.__version__, sys.modules["rfdetr"] = "1", package
    from rfdetr import config
    from rfdetr._namespace import _namespace_from_configs
    from rfdetr.models import lwdetr, postprocess
    from rfdetr.models._defaults import MODEL_DEFAULTS

    described = getattr(config, SIZES[size])(pretrain_weights="none.pth", device="cpu")
    training = config.TrainConfig(dataset_dir=".", output_dir=".")
    args = _namespace_from_configs(described, training, MODEL_DEFAULTS)
    model = object_models.randomized(lwdetr.build_model(args), object_models.RF_DETR_FACTORS)
    with torch.no_grad():  # ids of COCO that are no class never are found
        for name, value in model.named_parameters():
            if "class_embed" in name and name.endswith("bias"):
                value[[i for i in range(len(value)) if i not in COCO]] = -30.0
    return model, args, postprocess.PostProcess(num_select=args.num_select)


def prepared(photo, side):
    """Returns a photograph as Roboflow's `predict` prepares it, `(1, 3, side, side)`."""
    from torchvision.transforms.v2 import functional

    x = torch.tensor(photo).permute(2, 0, 1).float() / 255
    x = functional.resize(x, [side, side], antialias=False)
    return functional.normalize(x, *(object_models.IMAGENET[name] for name in ("image_mean", "image_std")))[None]


@freed
def case(folder, size):
    """Compares RF-DETR with Roboflow's code: all outputs of COCO's classes, and the found boxes."""
    model, args, post = roboflow(size)
    path, ids, rows = pathlib.Path(folder) / "checkpoint.pth", sorted(COCO), {}
    photos = object_models.photos("nano" in size)
    images = [prepared(photo, args.resolution) for photo in photos]
    object_models.clear(model.transformer, model, images, args.num_queries)
    torch.save({"model": model.state_dict(), "args": args, "epoch": 3}, path)
    ours = keras_vit.from_checkpoint(path)
    wanted = {"sets": ours.get_layer("boxes").input}
    wanted |= {"masks": ours.get_layer("masks").output} if args.segmentation_head else {}
    network = keras.Model(ours.input, wanted)
    for photo in photos:
        x, size_of = prepared(photo, args.resolution), photo.shape[:2]
        with torch.no_grad():
            out = model(x)
        found = network(golden_answers.pixels(ours, nhwc(x)), training=False)
        last = numbers(found["sets"])[:, -1]
        pairs = {
            "logits": (last[..., 4:][..., ids], out["pred_logits"][..., ids]),
            "boxes": (golden_answers.centers(last[..., :4]), out["pred_boxes"]),
        }
        pairs |= {"masks": (found["masks"], out["pred_masks"])} if args.segmentation_head else {}
        mine = keras_vit.preprocess(ours, photo)
        rows[f"{size_of[0]} x {size_of[1]}"] = row = {"outputs": outputs(pairs)}
        row["levels"] = levels(
            ours, [lambda photo, **_: {"pixel_values": prepared(photo, args.resolution)}], photo, mine
        )
        [right] = post({k: v for k, v in out.items() if v is not None}, torch.tensor([size_of]))
        output = numbers(ours(mine, training=False))[0, :, : 4 + len(ids)]
        least = between(out["pred_logits"].sigmoid())
        edges, labels, scores = box_outputs.likely(output, least, several=True)
        edges, kept = (edges * np.tile(size_of, 2))[:, [1, 0, 3, 2]], right["scores"] > least
        original = [right[name][kept].numpy() for name in ("boxes", "scores", "labels")]
        row["found"] = boxes((edges, scores, np.array(ids)[labels]), original)
    return {**by_photo(rows), "rfdetr": version("rfdetr")}


def cases():
    """Returns functions of a folder by the names of their rows; none without rfdetr."""
    if importlib.util.find_spec("rfdetr") is None:
        return {}
    return {f"rfdetr {size}, checkpoint.pth": functools.partial(case, size=size) for size in SIZES}
