"""Muon for the matrices of blocks and the convolutions of stems."""

import keras
from keras import ops

from keras_vit.training.layer_factors import HEAD, LayerDecay, blocks_of
from keras_vit.utils.keras_private import MuonHooks

PIXELS = 4  # channels, at most, of a convolution that reads images


@keras.saving.register_keras_serializable(package="keras_vit")
class Muon(MuonHooks, LayerDecay, keras.optimizers.Muon):
    """Keras's Muon for the matrices of blocks and for convolutions, and its Adam for all else, with layer-wise decay.

    Muon makes the update of a matrix nearly orthogonal, by five steps of Newton and Schulz's iteration. Jordan et al.
    2024 (https://kellerjordan.github.io/posts/muon/); scaled to the size of AdamW's updates as in Liu et al. 2025
    (arXiv:2502.16982), so that learning rates and weight decay of AdamW fit. Queries, keys and values are one matrix.
    The kernel of a convolution is a matrix with a row for each input of a window; Adam moves those that read images and
    those of heads.

    Args:
        layer_decay: Factor on the learning rate from a block to the one below it, in (0, 1].
        **kwargs: As in `keras.optimizers.Muon`. `weight_decay` is that of all variables, whichever of the two moves
            them; `exclude_from_weight_decay` keeps it from some. `adam_weight_decay` is not used.
    """

    def build(self, variables):
        self.blocks = tuple(f"{block}/" for block in blocks_of([v.path for v in variables]))
        super().build(variables)

    def is_convolution(self, variable):
        """Returns whether a variable is the kernel of a convolution that Muon moves."""
        whole = len(variable.shape) == 4 and variable.shape[2] > PIXELS and variable.shape[3] > 1
        return whole and not HEAD.match(variable.path)

    def is_in_block(self, variable):
        """Returns whether a variable is a kernel in one of the blocks that the optimizer was built with."""
        return variable.path.startswith(self.blocks) and "kernel" in variable.path.rpartition("/")[2]

    def zeropower_via_newtonschulz5(self, x, steps):
        return ops.reshape(super().zeropower_via_newtonschulz5(_matrix(x), steps), x.shape)

    def lr_adjust(self, x):
        return ops.reshape(super().lr_adjust(_matrix(x)), x.shape)


def _matrix(kernel):
    return ops.reshape(kernel, (-1, kernel.shape[-1]))
