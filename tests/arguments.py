"""Valid arguments of every public function and layer, for the tests that replace one at a time."""

import functools
import tempfile

import keras
import numpy as np

import keras_vit
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import Index
from tests import clipsegs, depths, masks, owls, poses
from tests.towers import WORDS, two_towers

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype("uint8")
LABELS = np.arange(4) % 3


@functools.cache
def model():
    return keras_vit.vit("mu/4", image_size=8, num_classes=3)


@functools.cache
def text():
    return keras_vit.text_tower(vocabulary=20, length=5, width=8, depth=1, num_heads=2, end=1, projection=3)


@functools.cache
def writes():
    from tests.captions import small

    return small()


@functools.cache
def draws():
    from tests.dits import small

    return small()


@functools.cache
def both():
    return two_towers()


@functools.cache
def index():
    """Returns an index of six images in two folders."""
    vectors, paths = np.random.default_rng(0).normal(size=(6, 32)), [f"{'ab'[i % 2]}/{i}.png" for i in range(6)]
    about = {"folder": "/photos", "share": [0, 1], "model": "", "fingerprint": Embedder(model()).fingerprint()}
    return Index(vectors.astype("float32"), np.array(paths), np.zeros((0, 2), "U1"), about)


@functools.cache
def photos():
    """Returns a folder with an image."""
    folder = tempfile.mkdtemp()
    keras.utils.save_img(f"{folder}/a.png", PIXELS[0])
    return folder


def batches():
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((PIXELS, LABELS)).batch(2)


def small():
    from tests.small import small

    return small()


# Valid arguments of each function: one at a time is replaced. Arguments of the same kinds are left out.
TAKES = {
    "add_lora": lambda: dict(model=model(), rank=2),
    "attention_maps": lambda: dict(model=model(), images=PIXELS),
    "attention_relevance": lambda: dict(model=model(), images=PIXELS, classes=1),
    "attention_rollout": lambda: dict(model=model(), images=PIXELS, fusion="mean", discard=0.1),
    "augment": lambda: dict(dataset=batches(), settings=keras_vit.Augment(), num_classes=None, seed=0),
    "calibrate": lambda: dict(target=model(), arrays=None),
    "check_data": lambda: dict(model=model(), images=PIXELS, labels=LABELS),
    "class_names": lambda: dict(model=model(), names=list("abc")),
    "compare_layers": lambda: dict(reference="a.tflite", other="b.tflite", images=PIXELS),
    "count_macs": lambda: dict(model=model()),
    "cross_validate": lambda: dict(recipe=small(), folds=2, train=None, validation=None),
    "datasets": lambda: dict(recipe=small(), train=None, validation=None),
    "dit": lambda: dict(
        variant="mu/4", image_size=8, channels=1, out_channels=None, mean=0.5, std=0.5, value_range=(-1, 1), width=16,
        depth=1, num_heads=2, mlp_dim=8, patch_size=4, norm={}, mlp_epsilon=None, block={}, rotary=None, dropout=0.0,
        time_scale=1.0, time_closed=False, own_conditions=False, num_classes=3, text=None, cross_attention=None,
        predicts="output", metadata=None,
    ),
    "embed_folder": lambda: dict(
        folder=photos(), model=model(), out="a.npz", tokens=False, share=(0, 1), batch_size=2, overwrite=True,
        frames=None,
    ),
    "evaluate": lambda: dict(target="nowhere", split=None, arrays=None, changes=None, tiles=None),
    "export_onnx": lambda: dict(model=model(), path="a.onnx", images=PIXELS, classes=LABELS, labels=list("abc")),
    "export_openvino": lambda: dict(
        model=model(), path="a.xml", quantize=None, batch=None, images=PIXELS, classes=LABELS, labels=list("abc")
    ),
    "export_saved_model": lambda: dict(
        model=model(), path="folder", images=PIXELS, classes=LABELS, labels=list("abc"), xla=False
    ),
    "export_tflite": lambda: dict(
        model=model(), path="a.tflite", quantize=None, batch_size=1, input_dtype="float32", images=PIXELS,
        classes=LABELS, labels=list("abc"),
    ),
    "features": lambda: dict(model=model(), layers=[0]),
    "fit": lambda: dict(recipe=small(), train=None, validation=None, save_steps=None),
    "freeze": lambda: dict(model=model(), upto=0),
    "from_checkpoint": lambda: dict(
        source="none.npz", part="image", text=None, format="auto", head=None, resample=None, patches="resize",
        grid=None, sha256=None,
    ),
    "from_pretrained": lambda: dict(source="mnist", part="image"),
    "from_recipe": lambda: dict(name="digits", changes=None),
    "inflated": lambda: dict(model=model(), frames=4, tubelet=2, kernel="central", time_depth=0, metadata=None),
    "inspect_index": lambda: dict(
        index=index(), labels=None, splits=None, recipe=None, folder=None, near=0.9, to=None, overwrite=False
    ),
    "instance_map": lambda: dict(masks=PIXELS[..., 0] > 99, classes=LABELS, stuff=[1]),
    "knn": lambda: dict(index=index(), images=PIXELS, labels=None, k=2, model=model()),
    "learn_words": lambda: dict(texts=["a cat", "a dog"], size=20, least=2, letters=False),
    "list_checkpoints": lambda: dict(words="B/16"),
    "list_recipes": dict,
    "list_variants": dict,
    "load_index": lambda: dict(files="a.npz"),
    "load_recipe": lambda: dict(name="digits", changes={}),
    "load_run": lambda: dict(target="nowhere", file="model.keras", job=None),
    "load_weights": lambda: dict(model=model(), source="none.npz", format="auto", head="require", patches="require"),
    "merge_lora": lambda: dict(model=model()),
    "merge_tokens": lambda: dict(model=model(), r=1),
    "nearest": lambda: dict(index=index(), images=PIXELS, k=2, model=model()),
    "pca_image": lambda: dict(model=model(), images=PIXELS, foreground=True, tiles=False),
    "plot_attention": lambda: dict(model=model(), images=PIXELS, titles=None, method="rollout"),
    "plot_history": lambda: dict(history={"loss": [1.0, 2.0]}),
    "predict": lambda: dict(
        target="mnist", images=[], top=3, to=None, job=None, reference=None, tiles=None, resume=False, json=None,
        csv=None,
    ),
    "predictor": lambda: dict(model=model(), engine="keras", dtype="float32", threads=None),
    "preprocess": lambda: dict(model=model(), images=[PIXELS[0]]),
    "probe": lambda: dict(index=index(), labels=None, model=model(), validation=0.5, seed=0),
    "report": lambda: dict(target="nowhere", to=None, arrays=None, most=1),
    "sample": lambda: dict(
        model=draws(), labels=[0], steps=1, guidance=1.0, seed=0, method="euler", path=False, decoder=None, batch_size=2
    ),
    "push_to_hub": lambda: dict(target=model(), repository="me/a", folder="published"),
    "save_checkpoint": lambda: dict(model=model(), path="a.npz", format="google"),
    "segment": lambda: dict(
        model=masks.small(), photos=PIXELS, kind="panoptic", threshold=0.1, mask_threshold=0.5, overlap_threshold=0.8,
        stuff=[0],
    ),
    "sweep": lambda: dict(recipe=small(), options={"optim.learning_rate": [0.1, 0.2]}, draw=1),
    "text_tower": lambda: dict(
        vocabulary=20, length=5, width=8, depth=1, num_heads=2, mlp_dim=8, causal=True, pooling="end", end=1,
        projection=4, projection_bias=False, gelu="tanh", epsilon=1e-6, metadata=None,
    ),
    "text_decoder": lambda: dict(
        vocabulary=20, length=5, width=8, depth=1, num_heads=2, mlp_dim=8, context_width=4, project_context=False,
        mask_context=False, norm_order="pre", gelu="tanh", epsilon=1e-6, positions="learned", pad=None, masked_id=None,
        scale_words=False, norm_words=False, final_norm=None, transform=False, tied=True, logit_bias=False,
        dropout=0.0, metadata=None,
    ),
    "by_frames": lambda: dict(model=both(), frames=2),
    "captioner": lambda: dict(image=model(), decoder=text(), start=0, end=1, pad=None),
    "export_writer": lambda: dict(model=writes(), path="a", format=".tflite", length=12, overwrite=False),
    "estimate_depth": lambda: dict(model=depths.small(), images=PIXELS),
    "estimate_poses": lambda: dict(
        model=poses.small(), image=PIXELS[0], boxes=[(0, 0, 4, 4)], refine="dark", flip_test=True
    ),
    "generate_text": lambda: dict(
        model=writes(), images=PIXELS, tokens=None, beams=1, length=4, length_penalty=1.0, prompt=None, batch_size=2,
        temperature=1.0, top_k=3, top_p=0.9, seed=0, bad_images="raise",
    ),
    "transfer": lambda: dict(
        models=["mnist"], data=["digits"], examples=30, tests=9, epochs=None, seed=0
    ),
    "two_towers": lambda: dict(image=model(), text=text(), scale=1.0, bias=None),
    "tokenizer": lambda: dict(source=["<pad>", "a"], length=4, family="words", long="raise"),
    "video_vit": lambda: dict(variant="mu/4", frames=4, tubelet=2, time_depth=0, image_size=8, pool_epsilon=None),
    "vilt": lambda: dict(
        variant="mu/4", vocabulary=20, length=5, pad=0, image_size=8, channels=3, num_classes=3, dropout=0.0, width=32,
        stochastic_depth=0.0, metadata=None, answer_dim=None, word_epsilon=None, norm={}, block={},
    ),
    "vit": lambda: dict(
        variant="mu/4", image_size=8, channels=3, num_classes=3, pooling="token", position="learned", dropout=0.0,
        stochastic_depth=0.0, mean=0.5, std=0.5, stem=None, width=32, depth=1, num_heads=2, mlp_dim=8, patch_size=4,
        metadata=None, representation_size=None, rotary=None, tokens={}, norm={}, block={}, pool={},
    ),
    "zero_shot": lambda: dict(
        model=both(), images=PIXELS, classes=["cat", "dog"], tokens=WORDS, prompts=("a {}",), batch_size=2,
        bad_images="raise", frames=None,
    ),
    "zero_shot_classifier": lambda: dict(model=both(), classes=["cat", "dog"], tokens=WORDS, prompts=("a {}",)),
    "zero_shot_detector": lambda: dict(
        model=owls.shared(), classes=["cat"], tokens=WORDS, prompts=("a {}",), most=2, threshold=0.1
    ),
    "detect": lambda: dict(
        model=owls.shared(), images=PIXELS, classes=["cat"], tokens=WORDS, prompts=("a {}",), threshold=0.1,
        suppression=0.5, batch_size=4,
    ),
    "zero_shot_segmenter": lambda: dict(model=clipsegs.shared(), prompts=["cat"], tokens=WORDS, names=["cat"]),
    "segment_prompts": lambda: dict(
        model=clipsegs.shared(), images=PIXELS, prompts=["cat", PIXELS[0]], tokens=WORDS, batch_size=4
    ),
    "prompt_vectors": lambda: dict(model=clipsegs.shared(), prompts=["cat", PIXELS[0]], tokens=WORDS),
    "example_queries": lambda: dict(model=owls.shared(), examples={"cat": [PIXELS[0]]}, batch_size=4),
}  # fmt: skip
LAYERS = {
    "AdaptiveBlock": dict(num_heads=2, mlp_dim=8, mlp_epsilon=None),
    "AdaptiveHead": dict(channels=1, patch_size=2, grid=(2, 2), epsilon=1e-6),
    "AffineSampling": dict(size=(4, 6), align_corners=False),
    "AddToImage": dict(scale=2, keep_brightness=False),
    "AnomalyDetector": dict(model=None, batch_size=32, tiles=False),
    "ConvStem": dict(filters=(8,), strides=None, branches=None, norm=True),
    "CrossAttention": dict(num_heads=2, qkv_bias=True, dropout=0.0, attention_dropout=0.0),
    "DPTHead": dict(units=2, filters=8, factors=(1,), dropout=0.0),
    "DecoderBlock": dict(num_heads=2, mlp_dim=8, norm_order="post", gelu="relu", epsilon=1e-6, dropout=0.0),
    "DeformableAttention": dict(num_heads=2, points=2),
    "DepthHead": dict(grid=(2, 2), filters=8, size=None, factors=(1,), readout="ignore", hidden=8, end=None, scale=1.0),
    "DeformableDecoder": dict(
        grid=(3, 4), units=2, queries=5, width=16, depth=1, num_heads=2, cross_heads=2, points=1, mlp_dim=8, steps=1,
        groups=1, projector_epsilon=1e-6, dropout=0.0,
    ),
    "InstanceMasks": dict(size=(6, 8), depth=1), "BoxesAndMasks": dict(),
    "Distiller": dict(student=None, teacher=None),
    "EndPool": dict(end=None),
    "FiLMDecoder": dict(
        grid=(2, 2), patch_size=8, units=3, width=4, num_heads=2, mlp_dim=8, condition_at=0, refined=False,
        epsilon=1e-5, conditions=2,
    ),
    "JobConv2D": dict(filters=3, jobs=2, zeros=False),
    "JobInput": dict(job=1, scale=2),
    "LayerScale": dict(initial_value=1e-4),
    "MaskDecoder": dict(units=3, num_heads=2, mlp_dim=8, depth=1, dropout=0.0),
    "MaskedAutoencoder": dict(model=None, mask_ratio=0.75),
    "MLP": dict(hidden_dim=8, gelu="tanh", swiglu=False, inner_norm=False, epsilon=1e-6, dropout=0.0, use_bias=True),
    "MultiHeadSelfAttention": dict(
        num_heads=2, qkv_bias=True, key_bias=True, qk_norm=False, rotary=None, relative=None, inner_norm=False
    ),
    "PatchEncoder": dict(
        width=8, class_token=True, registers=0, position="learned", grid=None, dropout=0.0, patch_norm=True,
        rms_norm=False, epsilon=1e-6, windows=1,
    ),
    "MergingBlock": dict(num_heads=2, mlp_dim=8, merged=1, num_prefix=0),
    "Patches": dict(patch_size=4),
    "FrameMean": dict(frames=2), "Frames": dict(frames=2, apart=False), "TimeSteps": dict(steps=3),
    "Tubelets": dict(frames=4, length=2, fold=False),
    "PixelHead": dict(channels=3, scale=2, depth=1),
    "PointBoxes": dict(most=5),
    "PlaceBoxes": dict(grid=(2, 2)), "Objectness": dict(), "QueryLogits": dict(units=3, queries=None),
    "TopBoxes": dict(most=5),
    "PoseHead": dict(grid=(2, 2), keypoints=3, scale=2, filters=8), "ShiftImage": dict(pixels=2), "Positions": dict(),
    "QueryDecoder": dict(units=2, queries=5, num_heads=2, mlp_dim=8, depth=2, grid=(2, 2), dropout=0.0, epsilon=1e-6),
    "QueryMap": dict(units=2, size=(4, 6)),
    "QueryMasks": dict(grid=(2, 2), units=2, queries=3, upscales=1, gelu="exact", epsilon=1e-6),
    "QueryTokens": dict(queries=3),
    "SetBoxes": dict(),
    "SetHead": dict(units=2, class_layers=1),
    "Similarity": dict(scale=1.0, bias=None),
    "RelativePositions": dict(grid=(2, 2), num_prefix=0),
    "ResNetStem": dict(stages=(1,), width=32, epsilon=1e-6, standardize="google"),
    "Rescale": dict(mean=0.5, std=0.5, metadata=None),
    "RotaryPositions": dict(grid=(2, 2), num_prefix=0, base=100.0, centered=True, offset=0.0, reference=None),
    "StandardizedConv2D": dict(filters=8, kernel_size=1, standardize="google"),
    "PaddingMask": dict(pad=0, others=2),
    "PatchDropout": dict(rate=0.1, num_prefix=1),
    "StochasticDepth": dict(rate=0.1),
    "TextureTransfer": dict(filters=4, scale=2),
    "TimeEmbedding": dict(width=8, scale=1.0, channels=8, closed=False),
    "Unmerge": dict(),
    "Words": dict(
        vocabulary=20, width=8, length=5, positions="learned", pad=None, scaled=False, logit_bias=False, metadata=None
    ),
    "TokenPool": dict(pooling="token", num_prefix=1, epsilon=1e-6),
    "TransformerBlock": dict(
        num_heads=2, mlp_dim=8, gelu="tanh", epsilon=1e-6, layer_scale=None, norm_order="pre", sub_norm=None,
        rms_norm=False, proj_bias=True, parallel=False,
    ),
}  # fmt: skip
