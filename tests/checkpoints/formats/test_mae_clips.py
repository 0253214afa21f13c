"""Published masked autoencoders of clips: `tests/golden/video/videomae_pretraining`, and live ones of transformers."""

import importlib.util
import json
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_vit import MaskedAutoencoder, MaskedLoss, from_checkpoint
from keras_vit.checkpoints.formats.mae import read_decoder
from tests.checkpoints.helpers import GOLDEN, benchmark, unexpected, write

pytestmark = pytest.mark.filterwarnings("ignore::keras_vit.checkpoints.remarks.Assumption")

FOLDER = GOLDEN.parent / "video" / "videomae_pretraining"
golden = benchmark("golden_answers")


def read(folder, **options):
    return MaskedAutoencoder.from_checkpoint(folder / "checkpoint.safetensors", **options)


def answers(learner, videos, masked):
    """Returns the outputs for the masked tubelets in their order, and the loss."""
    x = golden.pixels(learner.model, videos)
    packed = keras.ops.convert_to_numpy(learner({"images": x, "noise": np.float32(masked[:, : masked.shape[1] // 2])}))
    np.testing.assert_array_equal(packed[..., -1], masked)
    loss = float(MaskedLoss()(learner.targets(x), packed))
    return packed[masked].reshape(len(x), -1, packed.shape[-1])[..., :-1], loss


def test_transformers(tmp_path):
    io = np.load(FOLDER / "io.npz")
    learner = read(FOLDER, mask_ratio=0.75)
    logits, loss = answers(learner, io["videos_nthwc"], io["masked"].astype(bool))
    np.testing.assert_allclose(logits, io["logits"], atol=1e-5)
    assert loss == pytest.approx(float(io["loss"]), abs=1e-5)
    encoder = from_checkpoint(FOLDER / "checkpoint.safetensors")
    for ours, theirs in zip(learner.model.weights, encoder.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    learner.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(answers(again, io["videos_nthwc"], io["masked"].astype(bool))[0], logits)


def test_what_is_read():
    stated, weights = read_decoder(FOLDER / "checkpoint.safetensors")
    assert stated == {
        "width": 18, "depth": 2, "num_heads": 3, "mlp_dim": 40, "mask_ratio": 0.9, "normalize": True,
    }  # fmt: skip
    assert "decoder/position" not in weights and weights["decoder/embed/kernel"].shape == (24, 18)
    longer = read(FOLDER, frames=8)  # positions are a formula
    assert longer.output_shape == (None, 4 * 16, 385) and longer.mask_ratio == 0.9
    assert not read(FOLDER, normalize=False).normalize


def test_bad_files(tmp_path):
    def load(name, change, **more):
        (tmp_path / name).mkdir()
        shutil.copy(FOLDER / "config.json", tmp_path / name)
        changed = safetensors.numpy.load_file(FOLDER / "checkpoint.safetensors")
        change(changed)
        write(tmp_path / name / "checkpoint.safetensors", changed)
        return lambda: read(tmp_path / name, **more)

    small = np.zeros((18, 18), "float32")
    assert not unexpected(
        [
            (load("a", lambda a: a.pop("mask_token")), "decoder/mask_token missing, not .1, 1, 18."),
            (load("b", lambda a: a.update({"decoder.extra": small})), "not in a decoder: decoder.extra"),
            (load("c", lambda a: a.update({"encoder_to_decoder.bias": small})), "decoder: encoder_to_decoder.bias"),
            (load("d", lambda a: a.update({"decoder.head.weight": small})), r"kernel \(18, 18\), not \(18, 384"),
            (load("e", lambda a: a.pop("encoder_to_decoder.weight")), "must contain the decoder"),
            (lambda: read(FOLDER, patch_size=4), "has tubelets of 2 x 8 x 8 .*, and the model of 2 x 4 x 4"),
        ]
    )


OF_AUTHORS = (  # transformers' names, and the authors'
    *(("videomae.embeddings.patch_embeddings.projection", "encoder.patch_embed.proj"),),
    *(("videomae.layernorm", "encoder.norm"), ("videomae.encoder.layer.", "encoder.blocks.")),
    *(("decoder_layers.", "blocks."), ("layernorm_before", "norm1"), ("layernorm_after", "norm2")),
    *(("attention.output.dense", "attn.proj"), ("intermediate.dense", "mlp.fc1"), ("output.dense", "mlp.fc2")),
    *(("attention.attention.", "attn."),),
)


def authors(arrays):
    """Returns a file's tensors under the authors' names, with one kernel of query, key and value."""
    found = {}
    for name, array in arrays.items():
        for old, new in OF_AUTHORS:
            name = name.replace(old, new)
        found[name] = array
    for name in [name for name in found if name.endswith("attn.query.weight")]:
        start = name.removesuffix("query.weight")
        parts = [found.pop(f"{start}{part}.weight") for part in ("query", "key", "value")]
        found[f"{start}qkv.weight"] = np.concatenate(parts)
    return found


def random(decoder_width=18):
    """Returns random tensors under transformers' names, with a decoder of a width."""
    rng, arrays = np.random.default_rng(0), safetensors.numpy.load_file(FOLDER / "checkpoint.safetensors")
    shapes = {name: array.shape for name, array in arrays.items()}
    shapes = {name: tuple(decoder_width if side == 18 else side for side in shape) for name, shape in shapes.items()}
    return {name: rng.normal(0, 0.3, shape).astype("float32") for name, shape in shapes.items()}


def placed(folder, arrays, **changes):
    """Writes tensors, and config.json with changes if there are any; returns the file."""
    folder.mkdir()
    if changes:
        config = json.loads((FOLDER / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(config))
    write(folder / "model.safetensors", arrays)
    return folder / "model.safetensors"


def test_names_of_the_authors(tmp_path):
    """The same tensors in both namings give the same outputs: biases of query and value too (transformers 48675)."""
    arrays, io = random(), np.load(FOLDER / "io.npz")
    theirs = MaskedAutoencoder.from_checkpoint(placed(tmp_path / "a", arrays, layer_norm_eps=1e-6), mask_ratio=0.75)
    path = placed(tmp_path / "b", {f"module.{name}": array for name, array in authors(arrays).items()})
    sizes = dict(frames=4, image_size=32, num_heads=3)
    learner = MaskedAutoencoder.from_checkpoint(path, decoder_heads=3, mask_ratio=0.75, **sizes)
    assert learner.normalize and (learner.decoder.norm.epsilon, theirs.decoder.norm.epsilon) == (1e-6, 1e-5)
    found = [answers(each, io["videos_nthwc"], io["masked"].astype(bool)) for each in (learner, theirs)]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-3)
    learner.decoder.norm.epsilon = 1e-5
    logits, loss = answers(learner, io["videos_nthwc"], io["masked"].astype(bool))
    np.testing.assert_allclose(logits, found[1][0], atol=1e-5)
    assert loss == pytest.approx(found[1][1], rel=1e-5) and np.std(logits) > 0.1
    learner.save(tmp_path / "m.keras")
    assert keras.models.load_model(tmp_path / "m.keras").last_epsilon == 1e-6
    with pytest.raises(ValueError, match="no decoder of width 18 is published: pass decoder_heads"):
        MaskedAutoencoder.from_checkpoint(path, **sizes)


def test_heads_of_the_authors_decoders(tmp_path):
    """64 channels each, but of the huge model: `pretrain_videomae_{small,base,large,huge}_patch16_224`."""
    for width, heads in ((192, 3), (384, 6), (512, 8), (640, 8)):
        stated, _ = read_decoder(placed(tmp_path / str(width), authors(random(width))))
        assert (stated["width"], stated["num_heads"], stated["mask_ratio"]) == (width, heads, 0.9)


def test_a_learned_table_of_positions_is_refused(tmp_path):
    """The authors' `use_learnable_pos_emb`: their own files have a formula's positions, which are not stored."""
    path = placed(tmp_path / "a", authors(random()) | {"encoder.pos_embed": np.zeros((1, 32, 24), "float32")})
    with pytest.raises(ValueError, match="not in the model: (encoder.)?pos_embed"):
        from_checkpoint(path, frames=4, image_size=32, num_heads=3)


def test_an_encoder_without_a_last_norm(tmp_path):
    """`use_mean_pooling`, transformers' default: `VideoMAEModel` then has no norm, and its tokens are decoded as is."""
    arrays, io = random(), np.load(FOLDER / "io.npz")
    bare = {name: array for name, array in arrays.items() if not name.startswith("videomae.layernorm.")}
    learner = MaskedAutoencoder.from_checkpoint(placed(tmp_path / "a", bare, use_mean_pooling=True), mask_ratio=0.75)
    assert not any(layer.name == "norm" for layer in learner.model.layers)
    masked, x = io["masked"].astype(bool), golden.pixels(learner.model, io["videos_nthwc"])
    noise = np.float32(masked[:, :16])
    tokens = learner._tokens(x)
    visible = np.stack([np.asarray(one)[~hidden] for one, hidden in zip(tokens, masked)])
    for i in range(2):
        visible = learner.model.get_layer(f"block_{i}")(visible)
    order = np.argsort(np.argsort(masked, axis=1, kind="stable"), axis=1)
    wanted = learner.decoder(visible, order)  # of the blocks' tokens
    found = learner({"images": x, "noise": noise})[..., :-1]
    np.testing.assert_allclose(np.asarray(found)[masked], np.asarray(wanted)[masked], atol=1e-4)
    for name, given, said in (("b", arrays, True), ("c", bare, False)):
        path = placed(tmp_path / name, given, use_mean_pooling=said)
        with pytest.raises(ValueError, match=f"says use_mean_pooling {said}, and the file has (a|no) layernorm after"):
            MaskedAutoencoder.from_checkpoint(path)


@pytest.mark.parametrize("normalize", [True, False])
def test_what_a_reconstruction_sees_of_masked_tubelets(normalize, tmp_path):
    """Nothing, but the mean and deviation of normalized pixels (reports MAE-pytorch 40, VideoMAE 25 and 120)."""
    learner = MaskedAutoencoder.from_checkpoint(placed(tmp_path / "a", random(), norm_pix_loss=normalize))
    clip = np.random.default_rng(0).uniform(60, 200, (1, 4, 32, 32, 3)).astype("float32")
    noise = np.random.default_rng(1).random((1, 16))
    masked, found = learner.reconstruct(clip, noise)
    hidden = (masked != clip).any(-1, keepdims=True)
    _, again = learner.reconstruct(np.where(hidden, 255 - clip, clip), noise)  # another mean, the same deviation
    assert 0.8 < hidden.mean() < 1
    if normalize:
        assert np.abs(found - again).max() > 1
    else:
        np.testing.assert_allclose(found, again, atol=1e-2)


@pytest.mark.parametrize("normalize", [True, False])
def test_beside_transformers_itself(normalize, tmp_path):
    """Live, other sizes than the golden file's, and pixels that are not normalized in each tubelet too."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    if importlib.util.find_spec("timm") is not None:
        benchmark("timm_alone").import_timm()  # makes torchvision importable
    import transformers

    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=48)
    sizes |= dict(decoder_hidden_size=20, decoder_num_hidden_layers=1, decoder_num_attention_heads=2, num_frames=6)
    config = transformers.VideoMAEConfig(
        **sizes, patch_size=8, tubelet_size=2, decoder_intermediate_size=28, use_mean_pooling=normalize
    )
    config.norm_pix_loss = normalize
    theirs = transformers.VideoMAEForPreTraining(config).eval()
    rng = np.random.default_rng(0)
    videos = rng.normal(size=(2, 6, 48, 48, 3)).astype("float32")
    places = rng.random((2, 36)).argsort(1) >= 4  # int(0.9 * 36) are masked
    masked = np.tile(places, (1, 3))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
        found = theirs(torch.tensor(np.moveaxis(videos, -1, 2).copy()), bool_masked_pos=torch.tensor(masked))
    theirs.save_pretrained(tmp_path)
    learner = MaskedAutoencoder.from_checkpoint(tmp_path)
    assert learner.normalize == normalize and learner.mask_ratio == 0.9
    assert json.loads((tmp_path / "config.json").read_text())["norm_pix_loss"] == normalize
    x = golden.pixels(learner.model, videos)
    packed = keras.ops.convert_to_numpy(learner({"images": x, "noise": np.float32(places)}))
    np.testing.assert_array_equal(packed[..., -1], masked)
    logits = packed[masked].reshape(2, -1, packed.shape[-1])[..., :-1]
    np.testing.assert_allclose(logits, found.logits.numpy(), atol=1e-4)
    loss = float(MaskedLoss()(learner.targets(x), packed))
    assert loss == pytest.approx(float(found.loss), rel=1e-4)
