"""Published masked autoencoders: `tests/golden/mae` is one of transformers, and what it computes."""

import importlib.util
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint
from keras_vit.checkpoints.formats.mae import read_decoder
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder, MaskedLoss
from tests.checkpoints.helpers import benchmark, file_of, unexpected, write

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "mae"
EXPECTED = np.load(GOLDEN / "expected.npz")
PIXELS = {"mean": 0.0, "std": 1 / 255}  # so that the model sees images as they are


def arrays():
    return safetensors.numpy.load_file(GOLDEN / "model.safetensors")


def authors(theirs):
    """Returns transformers' tensors under the names of the authors' files."""
    found = {}
    for name, array in theirs.items():
        name = name.removeprefix("vit.").replace("embeddings.patch_embeddings.projection", "patch_embed.proj")
        name = name.replace("decoder.decoder_encoder.layer.", "decoder_blocks.").replace("encoder.layer.", "blocks.")
        name = name.replace("embeddings.cls_token", "cls_token").replace("embeddings.position_embeddings", "pos_embed")
        name = name.replace("decoder.", "").replace("attention.output.dense", "attn.proj")
        name = name.replace("output.dense", "mlp.fc2").replace("intermediate.dense", "mlp.fc1")
        name = (
            name.replace("layernorm_before", "norm1").replace("layernorm_after", "norm2").replace("layernorm", "norm")
        )
        found[name] = array
    for query in [name for name in found if ".query." in name]:
        parts = [found.pop(query.replace("query", part)) for part in ("query", "key", "value")]
        found[query.replace("attention.attention.query", "attn.qkv")] = np.concatenate(parts)
    return found


def memory_names(theirs):
    """Returns transformers' tensors under the names that version 5 has in memory, or version 4 on disk."""
    new = {}
    for name, array in theirs.items():
        name = name.replace("decoder_encoder.layer.", "decoder_layers.").replace("encoder.layer.", "layers.")
        for old, now in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
            name = name.replace(f"attention.attention.{old}", f"attention.{now}")
        name = name.replace("attention.output.dense", "attention.o_proj").replace("intermediate.dense", "mlp.fc1")
        new[name.replace("output.dense", "mlp.fc2")] = array
    return new


def outputs(learner, expected=EXPECTED):
    x = {"images": expected["x"], "noise": expected["noise"]}
    packed = keras.ops.convert_to_numpy(learner(x))
    return packed, float(MaskedLoss()(learner.targets(expected["x"]), packed))


def assert_theirs(learner, expected=EXPECTED):
    packed, loss = outputs(learner, expected)
    np.testing.assert_allclose(packed[..., :-1], expected["predicted"], atol=1e-4)
    np.testing.assert_array_equal(packed[..., -1], expected["mask"])
    assert loss == pytest.approx(float(expected[f"loss_{learner.normalize}"]), abs=1e-4)


def test_transformers():
    learner = MaskedAutoencoder.from_checkpoint(GOLDEN, **PIXELS)
    assert learner.normalize and learner.mask_ratio == 0.75  # of config.json
    assert learner.decoder.mlp_dim == 40 and learner.decoder.num_heads == 2
    assert_theirs(learner)
    assert_theirs(MaskedAutoencoder.from_checkpoint(GOLDEN, normalize=False, **PIXELS))


def test_transformers_other_names(tmp_path):
    shutil.copy(GOLDEN / "config.json", tmp_path)
    write(tmp_path / "model.safetensors", memory_names(arrays()))
    assert_theirs(MaskedAutoencoder.from_checkpoint(tmp_path, **PIXELS))


def test_the_authors_names(tmp_path):
    path = write(tmp_path / "mae_pretrain_full.safetensors", authors(arrays()))
    with pytest.raises(ValueError, match="`normalize` must be passed"):
        MaskedAutoencoder.from_checkpoint(path)
    learner = MaskedAutoencoder.from_checkpoint(path, normalize=True, decoder_heads=2, num_heads=3, **PIXELS)
    assert_theirs(learner)


@pytest.mark.parametrize("names", [dict, memory_names, authors])
def test_the_encoder_alone(names, tmp_path):
    path = write(tmp_path / "file.safetensors", names(arrays()))
    model = from_checkpoint(path, num_heads=3, norm={"epsilon": 1e-6}, **PIXELS)
    learner = MaskedAutoencoder.from_checkpoint(GOLDEN, **PIXELS)
    assert model.output_shape == (None, 24)
    np.testing.assert_allclose(model(EXPECTED["x"]), learner.model(EXPECTED["x"]), atol=1e-5)


def test_what_is_read_off_the_tensors():
    stated, weights = read_decoder(GOLDEN / "model.safetensors", num_heads=4)
    assert stated["width"] == 16 and stated["depth"] == 1 and stated["mlp_dim"] == 40 and stated["num_heads"] == 4
    assert weights["decoder/position"].shape == (1, 17, 16)
    np.testing.assert_array_equal(weights["decoder/predict/kernel"], arrays()["decoder.decoder_pred.weight"].T)


def test_bad_files(tmp_path):
    def load(name, change, **more):
        changed = dict(arrays())
        change(changed)
        path = write(tmp_path / f"{name}.safetensors", changed)
        return lambda: MaskedAutoencoder.from_checkpoint(path, normalize=True, decoder_heads=2, num_heads=3, **more)

    narrow = np.zeros((16, 16), "float32")
    assert not unexpected(
        [
            (load("a", lambda a: a.pop("decoder.mask_token")), "decoder/mask_token missing, not .1, 1, 16."),
            (load("b", lambda a: a.update({"decoder.extra": narrow})), "not in a decoder: decoder.extra"),
            (
                load("c", lambda a: a.update({"decoder.decoder_pred.weight": narrow})),
                r"kernel \(16, 16\), not \(16, 48",
            ),
            (load("d", lambda a: None, image_size=32), r"decoder/position \(1, 17, 16\), not \(1, 65, 16\)"),
            (load("f", lambda a: a["decoder.mask_token"].fill(np.nan)), "not finite in decoder.mask_token"),
            (load("e", lambda a: a.pop("decoder.decoder_embed.weight")), "must contain the decoder"),
            (lambda: MaskedAutoencoder.from_checkpoint(file_of("google_vit")), "no decoder; keras_vit.from_checkpoint"),
        ]
    )


def test_beside_transformers_itself(tmp_path):
    """Live, other sizes than the golden file's; the authors' `.pth` is read through PyTorch."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable
    import transformers

    sizes = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64, image_size=32)
    sizes |= dict(decoder_hidden_size=24, decoder_num_hidden_layers=2, decoder_num_attention_heads=3)
    config = transformers.ViTMAEConfig(**sizes, patch_size=8, decoder_intermediate_size=96, mask_ratio=0.6)
    theirs = transformers.ViTMAEForPreTraining(config).eval()
    rng, expected = np.random.default_rng(0), {}
    x, expected["noise"] = rng.normal(size=(3, 3, 32, 32)).astype("float32"), rng.random((3, 16)).astype("float32")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
        for normalize in (True, False):
            theirs.config.norm_pix_loss = normalize
            found = theirs(torch.tensor(x), noise=torch.tensor(expected["noise"]))
            expected[f"loss_{normalize}"] = found.loss.numpy()
    expected |= {"x": x.transpose(0, 2, 3, 1), "predicted": found.logits.numpy(), "mask": found.mask.numpy()}
    theirs.save_pretrained(tmp_path / "hf")
    learner = MaskedAutoencoder.from_checkpoint(tmp_path / "hf", **PIXELS)
    assert learner.normalize == json.loads((tmp_path / "hf" / "config.json").read_text())["norm_pix_loss"]
    assert_theirs(learner, expected)
    tensors = safetensors.numpy.load_file(tmp_path / "hf" / "model.safetensors")
    torch.save({"model": {k: torch.tensor(v) for k, v in authors(tensors).items()}}, tmp_path / "full.pth")
    options = dict(mask_ratio=0.6, decoder_heads=3, num_heads=2, norm={"epsilon": config.layer_norm_eps})
    assert_theirs(
        MaskedAutoencoder.from_checkpoint(tmp_path / "full.pth", normalize=True, **options, **PIXELS), expected
    )
