"""What the encoder of a masked autoencoder must be."""

from keras_vit.models.options import flat, written

SHARE, SHARE_OF_TUBES = 0.75, 0.9  # masked in MAE and in VideoMAE
POOLINGS = ("token", "gap", "first", "last", "none")  # without weights, which no token would train


def visible_patches(patches, mask_ratio, tubes=False):
    """Returns how many patches stay visible; raises ValueError if none does, or none is masked.

    Authors round in two ways: MAE's the visible ones down, VideoMAE's, whose masks are `tubes`, the masked ones.
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
        "position": (POSITIONS, "no relative positions, which need all patches"),
        "pooling": (POOLINGS, "a pooling without weights"),
        "time_depth": ((0,), "no temporal encoder, which would need every place at every time"),
    }
    options = flat(arguments)
    for name, (fitting, words) in rules.items():
        if (value := options.get(name, fitting[0])) not in fitting:  # of a built model, dropout is not known
            raise ValueError(f"A masked autoencoder's model must have {words}. Received: {written(name, value)}")
