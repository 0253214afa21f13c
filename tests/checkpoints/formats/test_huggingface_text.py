import numpy as np
import pytest

from keras_vit.checkpoints.formats import huggingface_clip, huggingface_text
from keras_vit.checkpoints.tables import Missing
from tests.checkpoints.helpers import read_hub, unexpected

pytestmark = pytest.mark.backend

OWN = {"hidden_size": 8, "num_attention_heads": 2}


def read(**options):
    return read_hub(huggingface_text.FORMAT, "hf_clip", **options)


def test_sizes_are_of_the_tensors_and_the_rest_of_the_configuration():
    arguments, about, origins = read()
    assert arguments == dict(
        vocabulary=5, length=4, width=8, depth=1, num_heads=2, mlp_dim=8, causal=True, pooling="largest", projection=7,
        projection_bias=False, gelu="quick", epsilon=1e-5,
    )  # fmt: skip
    assert about == {"tokens": "clip"} and origins["gelu"] == origins["pooling"] == "config.json"
    assert origins["num_heads"] == "config.json"


@pytest.mark.parametrize(
    "kind, end, wanted",
    [
        ("clip", 2, {"pooling": "largest"}),
        ("clip", 4, {"pooling": "end", "end": 4}),
        ("clip", None, {"pooling": "end", "end": 49407}),  # transformers' default
        ("metaclip_2", 2, {"pooling": "end", "end": 2}),  # whose 2 is meant so
    ],
)
def test_where_a_text_ends(kind, end, wanted):
    text = OWN | ({} if end is None else {"eos_token_id": end})
    arguments, *_ = read(config={"model_type": kind, "text_config": text})
    assert arguments.items() >= wanted.items() and ("end" in arguments) == ("end" in wanted)


def test_the_newer_of_two_configurations_counts_and_absent_keys_are_transformers_defaults():
    both = {"text_config": OWN | {"hidden_act": "quick_gelu"}, "text_config_dict": {"hidden_act": "gelu"}}
    arguments, *_ = read(config={"model_type": "clip", **both})
    assert (arguments["gelu"], arguments["epsilon"]) == ("exact", 1e-5)
    arguments, _, origins = read(config={"model_type": "clip", "text_config": {}})
    assert arguments["num_heads"] == 8 and origins["num_heads"] == "transformers' default"


def test_bare_files_have_the_heads_of_published_text_towers():
    assert [huggingface_text.published_heads(width)[0] for width in (512, 768, 1024, 1280)] == [8, 12, 16, 20]
    arguments, _, origins = read(config={})
    assert arguments["num_heads"] is None and isinstance(origins["num_heads"], Missing)
    assert isinstance(origins["pooling"], Missing)  # CLIP's table has another size


def test_other_models_with_these_names_are_refused():
    calls = [
        (
            lambda: read(config={"model_type": "xclip", "text_config": {"model_type": "xclip_text_model"}}),
            "'xclip_text",
        ),
        (lambda: read(config={"text_config": OWN | {"hidden_act": "relu"}}), "`hidden_act` must be one of"),
        (lambda: read(config={"text_config": {"hidden_size": 9}}), "hidden_size 9, and the weights have 8"),
    ]
    assert not unexpected(calls)


def test_metaclip_2_has_clip_s_image_tower():
    config = {"model_type": "metaclip_2", "vision_config": {"num_attention_heads": 3, "hidden_act": "quick_gelu"}}
    arguments, *_ = read_hub(huggingface_clip, "hf_clip", config=config)
    assert np.ravel(arguments["patch_size"]).tolist() == [8, 8] and arguments["block"]["gelu"] == "quick"
