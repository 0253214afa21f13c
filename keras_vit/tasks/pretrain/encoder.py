"""The requirements on the encoder that a method of pre-training trains."""

from keras_vit.models.options import flat, written

SHARE, SHARE_OF_TUBES = 0.75, 0.9  # default mask ratios of MAE and VideoMAE
POOLINGS = ("token", "gap", "first", "last", "none")  # without weights, which pre-training would not train


def visible_patches(patches, mask_ratio, tubes=False):
    """Returns the number of visible patches; raises ValueError if no patch is visible, or none masked.

    MAE's code rounds the number of visible patches down, VideoMAE's code the number of masked ones.

    Args:
        patches: Number of patches; of a clip, of places in a frame.
        mask_ratio: Share of the patches that are masked.
        tubes: Whether to round as VideoMAE, whose masks are tubes.
    """
    visible = patches - int(patches * mask_ratio) if tubes else int(patches * (1 - mask_ratio))
    if not 0 < visible < patches:
        raise ValueError(
            f"`mask_ratio` must leave at least one of {patches} patches visible and one masked. "
            f"Received: mask_ratio={mask_ratio}"
        )
    return visible


def check_encoder(arguments):
    """Raises ValueError unless masked pre-training trains everything of a model with these arguments."""
    from keras_vit.layers.inputs.patch_encoder import POSITIONS

    rules = {
        "stem": ((None,), "no stem, which would mix the pixels of visible and masked patches"),
        "num_classes": ((0,), "no head: num_classes=0"),
        "representation_size": ((None,), "no layer between pooling and head"),
        "final_norm": (("before", None), "the final norm before pooling, or none"),
        "rotary": ((None,), "no rotary positions, which need all patches"),
        "patch_dropout": ((0,), "no patch dropout: the task leaves patches out itself"),
        "tokens.block_positions": ((False,), "no positions in every block, which need all patches"),
        "tokens.windows": ((1,), "no windows, which need all patches"),
        "position": (POSITIONS, "no relative positions, which need all patches"),
        "pooling": (POOLINGS, "a pooling without weights"),
        "time_depth": ((0,), "no temporal encoder, which would need every place at every time"),
    }
    _check("A masked autoencoder's model", rules, arguments)


def check_student(arguments):
    """Raises ValueError unless a model with these arguments can take crops of two sizes in one step."""
    from keras_vit.layers.inputs.patch_encoder import POSITIONS

    rules = {
        "stem": ((None,), "no stem: its feature map of a small crop is another"),
        "num_classes": ((0,), "no head: num_classes=0"),
        "representation_size": ((None,), "no layer between pooling and head"),
        "rotary": ((None,), "no rotary positions, which are of one size"),
        "patch_dropout": ((0,), "no patch dropout, which counts the patches of one size"),
        "tokens.block_positions": ((False,), "no positions in every block, which are of one size"),
        "tokens.windows": ((1,), "no windows, which divide one size"),
        "position": (POSITIONS, "no relative positions, which are of one size"),
    }
    _check("The model of method='dino'", rules, arguments)


def _check(whose, rules, arguments):
    options = flat(arguments)
    for name, (fitting, words) in rules.items():
        if (value := options.get(name, fitting[0])) not in fitting:  # a built model does not show its dropout
            raise ValueError(f"{whose} must have {words}. Received: {written(name, value)}")
