"""Models that write about images beside live models of transformers, where it is installed, at published widths."""

import importlib.util
import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, generate_text
from tests.captions import images_of, marks_of, numbers, until
from tests.checkpoints.helpers import benchmark

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

IMAGES = np.random.default_rng(0).uniform(-1, 1, size=(3, 32, 32, 3)).astype("float32")
IDS = np.random.default_rng(0).integers(3, 99, size=(3, 10)).astype("int32")
IDS[:, 0], IDS[1, 7:], IDS[2, 4:] = 2, 1, 1  # the start, and padding
LENGTH = 12
VIT = dict(hidden_size=192, num_attention_heads=3, intermediate_size=384, num_hidden_layers=2, image_size=32,
           patch_size=8)  # fmt: skip
GPT2 = dict(vocab_size=100, n_positions=40, n_embd=192, n_head=3, n_layer=2, add_cross_attention=True)
TROCR = dict(vocab_size=100, max_position_embeddings=40, d_model=256, decoder_attention_heads=8, decoder_layers=2,
             decoder_ffn_dim=512, cross_attention_hidden_size=192)  # fmt: skip
SMALL = dict(activation_function="relu", use_learned_position_embeddings=False, scale_embedding=True)
BLIP = dict(vocab_size=100, max_position_embeddings=40, hidden_size=192, num_attention_heads=3, intermediate_size=384,
            num_hidden_layers=2, bos_token_id=2, sep_token_id=3, pad_token_id=1, encoder_hidden_size=192)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def importable():
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable


def pair(encoder, decoder, ids=(2, 3, 1), **of_encoder):
    """Returns transformers' pair of an image tower and a decoder, with ids of start, end and padding."""
    tower = getattr(transformers, f"{encoder}Model")(getattr(transformers, f"{encoder}Config")(**VIT | of_encoder))
    kind, head = ("GPT2", "LMHeadModel") if "n_embd" in decoder else ("TrOCR", "ForCausalLM")
    other = getattr(transformers, f"{kind}{head}")(getattr(transformers, f"{kind}Config")(**decoder))
    model = transformers.VisionEncoderDecoderModel(encoder=tower, decoder=other)
    for settings in (model.config, model.generation_config):
        settings.decoder_start_token_id, settings.eos_token_id, settings.pad_token_id = ids
        settings.bos_token_id = ids[0]
    return model


def blip(text=(), vision=()):
    return transformers.BlipForConditionalGeneration(
        transformers.BlipConfig(text_config=BLIP | dict(text), vision_config=VIT | dict(vision))
    )


CASES = {
    "gpt2": lambda: pair("ViT", GPT2),
    "gpt2-wider": lambda: pair("ViT", GPT2 | dict(n_embd=256, n_head=4, n_inner=300, activation_function="gelu")),
    "gpt2-own-matrix": lambda: pair("ViT", GPT2 | dict(tie_word_embeddings=False, layer_norm_epsilon=1e-3)),
    "trocr-base": lambda: pair("ViT", TROCR, qkv_bias=False),
    "trocr-small": lambda: pair("DeiT", TROCR | SMALL | dict(tie_word_embeddings=False)),
    "trocr-large": lambda: pair("ViT", TROCR | SMALL | dict(layernorm_embedding=False, tie_word_embeddings=False)),
    "trocr-projected": lambda: pair("ViT", TROCR | dict(cross_attention_hidden_size=None)),
    "blip-base": lambda: blip(),
    "blip-large": lambda: blip(dict(encoder_hidden_size=256), dict(hidden_size=256, num_attention_heads=4)),
}


def shaken(model, seed):
    """Draws every weight at random, so that texts have different words."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            of_norm = parameter.ndim == 1 and name.endswith("weight")
            scale = 0.3 if parameter.ndim == 1 or "embed" in name else 1.2 / parameter[0].numel() ** 0.5
            parameter.copy_(of_norm + scale * noise)
    return model.eval()


@pytest.mark.parametrize("case", CASES)
def test_writes_as_the_original(case, tmp_path):
    theirs = shaken(CASES[case](), seed=len(case))
    of_blip = case.startswith("blip")
    pixels, ids = torch.tensor(IMAGES.transpose(0, 3, 1, 2)), torch.tensor(IDS, dtype=torch.int64)
    with torch.no_grad():
        if of_blip:
            expected = theirs(pixel_values=pixels, input_ids=ids, attention_mask=(ids != 1).long()).logits
        else:
            expected = theirs(pixel_values=pixels, decoder_input_ids=ids).logits
        search = dict(do_sample=False, max_length=LENGTH)
        found = {beams: theirs.generate(pixels, num_beams=beams, **search).numpy() for beams in (1, 3)}
    theirs.save_pretrained(tmp_path)
    ours = from_checkpoint(tmp_path)
    images = images_of(ours, {"images_nhwc": IMAGES})
    logits = numbers(ours({"images": images, "texts": IDS}, training=False))
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-4)
    for beams, rows in found.items():
        ids = generate_text(ours, images, beams=beams, length=LENGTH).ids
        assert until(ids, marks_of(ours)["end"]) == until(rows, marks_of(ours)["end"]), beams


@pytest.mark.parametrize("beams, penalty", [(2, 0.5), (4, 2.0), (5, 0.0)])
def test_beams_and_prompts_as_the_original(beams, penalty, tmp_path):
    theirs = shaken(CASES["gpt2"](), seed=1)
    theirs.config.eos_token_id = theirs.generation_config.eos_token_id = 40
    prompt = torch.tensor(IDS[:, :3], dtype=torch.int64)
    search = dict(do_sample=False, max_length=20, num_beams=beams, length_penalty=penalty)
    with torch.no_grad():
        rows = theirs.generate(torch.tensor(IMAGES.transpose(0, 3, 1, 2)), decoder_input_ids=prompt, **search).numpy()
    theirs.save_pretrained(tmp_path)
    ours = from_checkpoint(tmp_path)
    images = images_of(ours, {"images_nhwc": IMAGES})
    found = generate_text(ours, images, beams=beams, length_penalty=penalty, length=20, prompt=IDS[:, :3])
    assert until(found.ids, 40) == until(rows, 40)


def test_old_files_in_pytorch_s_own_format(tmp_path):
    """As vit-gpt2's, which have masks and a second copy of the table of words."""
    theirs = shaken(CASES["gpt2"](), seed=2)
    theirs.save_pretrained(tmp_path)
    arrays = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    state = {name: torch.tensor(array) for name, array in arrays.items()}
    state["decoder.lm_head.weight"] = state["decoder.transformer.wte.weight"]
    state["decoder.transformer.h.0.attn.bias"] = torch.tril(torch.ones(1, 1, 40, 40))
    state["decoder.transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(state, tmp_path / "pytorch_model.bin")
    expected = numbers(from_checkpoint(tmp_path)({"images": IMAGES, "texts": IDS}))
    (tmp_path / "model.safetensors").unlink()
    np.testing.assert_array_equal(numbers(from_checkpoint(tmp_path)({"images": IMAGES, "texts": IDS})), expected)
    assert json.loads((tmp_path / "config.json").read_text())["decoder"]["model_type"] == "gpt2"
