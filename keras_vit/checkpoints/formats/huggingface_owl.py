"""Names in Hugging Face transformers' files of OWL-ViT and OWLv2: the heads on their towers, which are CLIP's."""

from keras_vit.checkpoints.formats.transformers_config import part_of
from keras_vit.checkpoints.tables import Format, need, torch_dense, torch_norm

FEATURES, QUERY = "layer_norm.weight", "class_head.dense0"
EPSILON = 1e-5  # transformers' default
ROWS = (
    *torch_norm("features", "layer_norm"),
    *torch_dense("places/dense{i}", "box_head.dense{i}"),
    *torch_dense("objectness/dense{i}", "objectness_head.dense{i}"),
    *torch_dense("logits/dense0", QUERY),
    *torch_dense("logits/logit_shift", "class_head.logit_shift"),
    *torch_dense("logits/logit_scale", "class_head.logit_scale"),
)


def architecture(shapes, checkpoint):
    tower = part_of(checkpoint.config, "vision")
    epsilon = tower.get("layer_norm_eps", EPSILON)
    arguments = {
        "width": need(shapes, FEATURES, 1)[0],
        "units": need(shapes, f"{QUERY}.weight", 2)[0],
        "objectness": "objectness_head.dense0.weight" in shapes,
        "epsilon": epsilon,
    }
    return arguments, {}, {}


FORMAT = Format(
    name="huggingface-owl",
    rows=ROWS,
    detect=lambda names: f"{QUERY}.weight" in names,
    architecture=architecture,
    ignored=r"(owlvit|owlv2)\..*|box_bias",
)
