"""Layer-wise decay of the learning rate: the factor of each variable, and an optimizer's step with it."""

import re

from keras import ops

from keras_vit.utils.keras_private import OptimizerHooks


class LayerDecay(OptimizerHooks):
    """Layer-wise decay of the learning rate, and with it of weight decay.

    The configuration of a built optimizer says which variables `exclude_from_weight_decay` left out, by their places
    among those of `build`; before that, what it was called with. Keras forgets both, and a compiled model that is
    loaded would decay all.
    """

    def __init__(self, *args, layer_decay=1.0, undecayed=(), **kwargs):
        super().__init__(*args, **kwargs)
        self.layer_decay = layer_decay
        self.undecayed = undecayed if isinstance(undecayed, dict) else list(undecayed)
        self.excluded = False

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        super().exclude_from_weight_decay(var_list, var_names)
        self.undecayed = {"paths": [variable.path for variable in var_list or ()], "names": list(var_names or ())}
        self.excluded = True

    def build(self, variables):
        if self.undecayed and not self.excluded and not self.built:
            if isinstance(self.undecayed, dict):
                paths = set(self.undecayed["paths"])
                left_out, names = [v for v in variables if v.path in paths], self.undecayed["names"]
            else:
                left_out, names = [variables[i] for i in self.undecayed], None
            self.exclude_from_weight_decay(left_out, names)
        super().build(variables)
        self.undecayed = [i for i, variable in enumerate(variables) if self.leaves_out(variable)]
        self.factors = layer_factors([v.path for v in variables], self.layer_decay)

    def update_step(self, gradient, variable, learning_rate):
        rate = learning_rate * self.factors[self.index_of(variable)]
        if self.decays(variable):
            decay = ops.cast(rate * self.weight_decay, variable.dtype)
            self.assign_sub(variable, ops.multiply(variable, decay))
        super().update_step(gradient, variable, rate)

    def get_config(self):
        return {**super().get_config(), "layer_decay": self.layer_decay, "undecayed": self.undecayed}


def layer_factors(paths, decay):
    """Returns the factor on the learning rate of each variable, for layer-wise decay.

    The factor is 1 after the last block (final norm, head, your own layers), `decay` in the last block, `decay**2` in
    the one below, and so on. Stem, patches, positions and everything else before the first block form one more layer.
    Variables between two blocks count with the lower one. Bao et al. 2022 (BEiT, arXiv:2106.08254), as in MAE's and
    timm's fine-tuning.

    Args:
        paths: Weight paths, such as `"block_3/mlp/fc1/kernel"`, in the order of `model.trainable_variables`: the order
            places layers with other names, such as the stem of another library or your own head.
        decay: Number in (0, 1].
    """
    blocks = blocks_of(paths)
    named = [re.search(r"block_(\d+)$", block) for block in blocks]
    if all(named):  # a decoder's blocks, which have a prefix of their own, come after the last
        blocks = [block for block in blocks if block.rpartition("/")[0] == blocks[0].rpartition("/")[0]]
        numbers = [int(block.rpartition("_")[2]) for block in blocks]
    else:
        numbers = range(len(blocks))
    depth = 1 + max(numbers, default=-1)
    inside = [
        next((n + 1 for n, block in zip(numbers, blocks) if path.startswith(f"{block}/")), None) for path in paths
    ]
    last = max((i for i, level in enumerate(inside) if level), default=-1)
    levels, level = [], 0
    for i, (path, own) in enumerate(zip(paths, inside)):
        level = own or level
        levels.append(0 if BELOW.match(path) and not own else level if i <= last else depth + 1)
    return [decay ** (depth + 1 - level) for level in levels]


def blocks_of(paths):
    """Returns the paths of the blocks that weights are in, such as `"block_3"`, from weight paths."""
    blocks = dict.fromkeys(match[1] for match in map(BLOCK.match, paths) if match and not HEAD.match(match[0]))
    return [*(blocks or dict.fromkeys(match[1] for match in map(NAMED.match, paths) if match))]


BLOCK = re.compile(r"(.*?)/attention/qkv/")  # a block of any name
NAMED = re.compile(r"((?:.*?/)?block_\d+)/")
HEAD = re.compile(r"(?:.*/)?head/")  # its attention is no block
BELOW = re.compile(r"(?:images|rescale|stem|patches|encoder|norm_pre)/")
