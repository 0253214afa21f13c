"""What other libraries call the arguments of layers and models, and what an error says of such a word."""

import functools
import inspect

from keras_vit.utils import checks

ARGUMENTS = {  # of layers and models: what the argument is called here, and elsewhere
    "width": "embed_dim embed_size hidden_dim hidden_size projection_dim d_model model_dim dim",
    "mlp_dim": "ff_dim feedforward_dim dim_feedforward d_ff dff intermediate_dim intermediate_size mlp_hidden_dim "
    "mlp_size mlp_units mlp_hidden_size hidden_units",
    "hidden_dim": "ff_dim feedforward_dim dim_feedforward d_ff dff intermediate_dim intermediate_size mlp_dim "
    "mlp_hidden_dim mlp_size mlp_units hidden_units hidden_features units",
    "num_heads": "heads n_heads nhead num_head n_head num_attention_heads",
    "depth": "layers num_layers n_layers num_hidden_layers transformer_layers num_blocks",
    "patch_size": "size patch_dim",
    "rate": "dropout drop_rate dropout_rate drop_prob drop_path drop_path_rate",
    "dropout": "drop drop_rate dropout_rate proj_drop hidden_dropout_prob rate",
    "attention_dropout": "attn_drop attn_dropout attn_drop_rate attention_dropout_rate attention_probs_dropout_prob",
    "stochastic_depth": "drop_path drop_path_rate stochastic_depth_rate",
    "epsilon": "eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon",
    "qkv_bias": "use_bias attention_bias",
    "gelu, 'tanh', 'exact' or 'quick'": "activation act_layer hidden_act hidden_activation act act_fn",
    "norm_order": "normalize_first norm_first pre_norm",
    "qk_norm": "use_qk_norm qk_normalization",
    "layer_scale": "init_values layer_scale_init_value layerscale_value",
    "class_token": "use_class_token cls_token use_cls_token add_class_token",
    "registers": "reg_tokens num_registers num_register_tokens",
    "position": "pos_embed pos_embedding position_embedding positional_embedding use_abs_pos_emb",
    "pooling": "pool pool_type global_pool pooling_type mode",
    "mlp_dim, the number of channels itself": "mlp_ratio",
    "mean and std, on a scale of 0 to 1": "scale offset",
}
READ_OFF = {  # what layers see in their input
    "the number of tokens": "num_patches num_tokens seq_len seq_length sequence_length max_length image_size img_size",
    "the width": ARGUMENTS["width"] + " width channels in_channels in_features input_dim",
    "the width of a head, which is the width divided by `num_heads`,": "key_dim value_dim head_dim head_size dim_head",
}
OPTIONS_OF_LAYERS = {"metadata", "parts"}
KERAS_NAMES = {
    "activity_regularizer", "autocast", "batch_input_shape", "batch_shape", "dtype", "dynamic", "implementation",
    "input_dim", "input_shape", "name", "trainable",
}  # fmt: skip


def meant(name, known):
    """Returns what an unknown argument is called here, as a sentence; `None` if no library has such a word.

    Args:
        name: The word.
        known: Names of the arguments that there are.
    """
    for ours, theirs in ARGUMENTS.items():
        if name in theirs.split() and ours.partition(",")[0].split()[0] in known:
            return f"keras_vit has {ours}."
    if name == "hidden_dim" and "mlp_dim" in known:  # elsewhere the width, or the channels inside the MLP
        return "keras_vit has mlp_dim for the channels inside the MLP; the width is read off the input."
    for size, words in READ_OFF.items():
        if name in words.split():
            return f"{size[0].upper()}{size[1:]} is read off the input: leave it out."
    return None


def layer_arguments(init):
    """Decorates the `__init__` of a layer: for an unknown or a misplaced argument, the error says what is meant."""
    named = [each for each in inspect.signature(init).parameters.values() if each.name != "self"]
    by_place = [each.name for each in named if each.kind is each.POSITIONAL_OR_KEYWORD]

    @functools.wraps(init)
    def wrapper(self, *args, **kwargs):
        known, owner = _known(type(self)), type(self).__name__
        if len(args) > len(by_place):
            places = " and ".join(f"`{name}`" for name in by_place) or "nothing"
            raise TypeError(
                f"`{owner}` takes {places} by place and the rest by name; sizes of its input, such as the number of "
                f"patches or their width, are read off the input. Received: {', '.join(map(checks.shown, args))}"
            )
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            own = sorted(known - KERAS_NAMES - OPTIONS_OF_LAYERS)
            said = [
                f"`{owner}` has no argument {name!r}. {meant(name, known) or checks.near(name, own)}"
                for name in unknown
            ]
            raise TypeError(" ".join(said))
        init(self, *args, **kwargs)

    return wrapper


@functools.cache
def _known(cls):
    """Returns the names of all arguments of a layer's class, those of the classes that it extends among them."""
    names = set(KERAS_NAMES)
    for owner in cls.__mro__:
        if "__init__" in vars(owner):
            names |= set(inspect.signature(owner.__init__).parameters) - {"self", "args", "kwargs"}
    return names
