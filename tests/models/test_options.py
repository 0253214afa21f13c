import ast
import inspect
import re

import numpy as np
import pytest

import keras_vit
from keras_vit import config, from_pretrained, vit
from keras_vit.config import consistency
from keras_vit.layers.blocks.norms import NORM
from keras_vit.layers.inputs.patch_encoder import TOKENS
from keras_vit.models import options
from keras_vit.models.vit import DEFAULTS

GIVEN = {"width": 8, "rotary": {"base": 7.0}, "tokens": {"registers": 2}, "block": {"gelu": "exact", "qk_norm": True}}


def test_options_have_dotted_names():
    dotted = options.flat(GIVEN)
    assert dotted["tokens.registers"] == 2 and dotted["block.gelu"] == "exact" and dotted["rotary"] == {"base": 7.0}
    assert options.nested(dotted) == GIVEN
    assert (
        options.written("block.gelu", "exact") == "block={'gelu': 'exact'}" and options.written("width", 8) == "width=8"
    )


def test_a_single_option_takes_the_place_of_another():
    found = options.merged(
        GIVEN, {"tokens": {"class_token": True}, "rotary": None}, {"block": {"gelu": "tanh"}, "norm": None}
    )
    assert found["tokens"] == {"registers": 2, "class_token": True} and found["block"] == {
        "gelu": "tanh",
        "qk_norm": True,
    }
    assert found["rotary"] is None and found["norm"] == {} and GIVEN["block"]["gelu"] == "exact"
    for wrong in ({"block": {"gelus": 1}}, {"block": "x"}):
        with pytest.raises(ValueError, match="`block` must be a dictionary with keys among norm_order, .* Received: "):
            options.merged(GIVEN, wrong)


def test_vit_has_a_signature():
    assert list(inspect.signature(vit).parameters) == list(DEFAULTS) and len(DEFAULTS) == 28
    with pytest.raises(TypeError, match=r"`vit` has no argument 'weights'. keras_vit has from_pretrained\("):
        vit("B/16", weights="augreg-i21k-i1k-384")
    with pytest.raises(ValueError, match="`tokens` must be a dictionary with keys among class_token, .*'register'"):
        vit("B/16", tokens={"register": 4})


@pytest.mark.parametrize(
    "section, expected", [("Args", DEFAULTS), ("Options of tokens", TOKENS), ("Options of normalizations", NORM)]
)
def test_the_docstring_explains_every_argument_with_its_default(section, expected):
    entries = inspect.getdoc(vit).partition(f"{section}:\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", entries, re.MULTILINE | re.DOTALL)
    documented = [(name, text) for name, text in documented if name != "variant"]
    defaults = {name: re.search(r"Defaults\s+to\s+`(.+)`\.\s*$", text)[1] for name, text in documented}
    expected = {
        name: None if name in options.OPTIONS else default for name, default in expected.items() if name != "variant"
    }
    assert list(defaults) == list(expected)  # in the same order
    assert {name: ast.literal_eval(default) for name, default in defaults.items()} == expected


def test_the_names_of_other_libraries_are_translated():
    for given, meant in (
        ("image_sise", "Did you mean 'image_size'"),
        ("classes", "keras_vit has num_classes."),
        ("num_class", "keras_vit has num_classes."),
        ("img_size", "keras_vit has image_size."),
        ("input_size", "keras_vit has image_size."),
        ("input_shape", r"keras_vit has image_size=\(height, width\) and channels."),
        ("include_top", "keras_vit has num_classes=0, for a model without a head."),
        ("classifier_activation", r"keras_vit has keras.Sequential\(\[model, keras.layers.Softmax\(\)\]\)."),
        ("drop_path_rate", "keras_vit has stochastic_depth."),
        ("registers", r"`registers` is an option of `tokens`: tokens=\{'registers': 3\}"),
        ("layer_scale", r"`layer_scale` is an option of `block`: block=\{'layer_scale': 3\}"),
    ):
        with pytest.raises(TypeError, match=f"`vit` has no argument '{given}'. {meant}"):
            vit("Ti/8", image_size=8, **{given: 3})
        with pytest.raises(ValueError, match=f"`vit` has no argument '{given}'. {meant}"):
            from_pretrained("mnist", **{given: 3})
        with pytest.raises(ValueError, match=f"`vit` has no argument '{given}'. {meant}"):
            consistency.check_recipe(config.Recipe(name="r", model={given: 3}, data=config.Data(source="")))
    named = {ours for ours in options.ARGUMENTS if not ours.startswith(("keras.", "from_pretrained"))}
    assert {ours.split("=")[0].split(",")[0] for ours in named} <= set(DEFAULTS)
    assert not set(options.MEANT) & set(DEFAULTS)


@pytest.mark.parametrize(
    "function, given, meant",
    [
        ("video_vit", "num_frames", "Did you mean 'frames'"),
        ("video_vit", "embed_dim", "keras_vit has width"),
        ("dit", "hidden_size", "keras_vit has width"),
        ("vilt", "num_attention_heads", "keras_vit has num_heads"),
        ("text_decoder", "intermediate_size", "keras_vit has mlp_dim"),
        ("vit", "num_patches", "The number of tokens is read off the input"),
        ("vit", "hidden_units", "keras_vit has mlp_dim"),
    ],
)
def test_every_function_that_builds_a_model_translates_them(function, given, meant):
    with pytest.raises(TypeError, match=f"`{function}` has no argument '{given}'. {meant}"):
        getattr(keras_vit, function)(**{given: 3})


ODD = {"num_classes": "ten", "block.gelu": ["tanh"], "block.layer_scale": "a", "mean": "half"}
ODD |= dict.fromkeys(
    ("tokens.class_token", "tokens.distilled", "tokens.class_position", "tokens.pre_norm", "block.qkv_bias",
     "block.qk_norm", "block.swiglu"), "False")  # fmt: skip


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(variant="B16"), "'B16'.*Did you mean 'B/16'"),
        *(
            (options.nested({"variant": "Ti/16", k: value}), re.escape(f"{k.rpartition('.')[2]}={value!r}"))
            for k, value in ODD.items()
        ),
        (dict(variant="XL/16"), "'XL/16'"),
        (dict(variant="B"), "'B'"),
        (dict(variant=None), "patch_size=None"),
        (dict(variant=None, patch_size=4), "width=None"),
        (dict(variant="Ti/16", width=0), "width=0"),
        (dict(variant="Ti/16", image_size=225), "225 x 225.*16 x 16"),
        (dict(variant="Ti/16", num_heads=5), "width of 192 cannot be split into 5 heads"),
        (dict(variant="Ti/16", image_size="big"), "image_size='big'"),
        *((dict(variant="Ti/16", **{k: "x"}), f"{k}='x'") for k in ("pooling", "position")),
        *((dict(variant="Ti/16", depth=depth), f"depth={depth}") for depth in (-1, 10**12)),
        *((dict(variant="Ti/16", norm={"epsilon": value}), f"epsilon={value}") for value in (0, np.inf)),
        (dict(variant="Ti/16", num_classes=-1), "num_classes=-1"),
        (dict(variant="Ti/16", stochastic_depth=1.5), "stochastic_depth=1.5"),
        (dict(variant="Ti/16", mean=(0.5, 0.5)), r"one for each of 3 channels. Received: mean=\[0.5, 0.5\]"),
        *((dict(variant="Ti/16", **{k: 0}), f"{k}=0") for k in ("patch_size", "std")),
        (dict(variant="Ti/16", tokens={"class_token": False}), "class_token=False"),
        (dict(variant="Ti/16", mean=np.array([0.5, 0.5])), r"\[0.5, 0.5\]"),
        (dict(variant="Ti/16", pooling="gap", tokens={"distilled": True}), "pooling='gap'"),
        (dict(variant="Ti/16", block={"gelu": "x", "norm_order": "pre"}), "gelu='x'"),
        (dict(variant="Ti/16", block={"norm_order": "last"}), "norm_order='last'"),
        (dict(variant="Ti/16", final_norm="last"), "final_norm='last'"),
        (dict(variant="Ti/16", rotary="dino"), "rotary='dino'"),
        (dict(variant="Ti/16", pool={"heads": 8}), "`pool` .* {'heads': 8}"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        vit(**arguments)
