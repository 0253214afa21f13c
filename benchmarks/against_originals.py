"""Logits beside those of live timm and Hugging Face models: every kind, random weights, read from what they save.

Needs torch, timm and transformers: python benchmarks/against_originals.py > benchmarks/results/against_originals.json
With words, only cases that have one in their names run, and are written into that file, each with commit and versions:
python benchmarks/against_originals.py TextModel Vilt
"""

import inspect
import json
import pathlib
import sys
import tempfile

from timm_alone import import_timm  # isort: skip

timm = import_timm()  # before TensorFlow: the other way, their copies of LLVM collide

import coverage  # noqa: E402
import depth_models  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
import object_answers  # noqa: E402
import roboflow_answers  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from checkout import about  # noqa: E402

import keras_vit  # noqa: E402

RESULTS = pathlib.Path(__file__).parent / "results" / "against_originals.json"
WORDS = sys.argv[1:]
PACKAGES = ("keras", "torch", "timm", "transformers")
SIZES = (224, 384, (224, 320))
NAMES = {
    "Ti": "vit_tiny_patch16_224",
    "S": "vit_small_patch16_224",
    "B": "vit_base_patch16_224",
}
KINDS = {
    "vit_small_patch16_224, global_pool='avg'": dict(global_pool="avg"),
    "vit_small_patch16_224, fc_norm=False, avg": dict(global_pool="avg", fc_norm=False, class_token=False),
    "vit_small_patch16_224, qkv_bias=False": dict(qkv_bias=False),
    "vit_small_patch16_224, qk_norm": dict(qk_norm=True),
    "vit_small_patch16_224, 4 registers": dict(reg_tokens=4, no_embed_class=True, init_values=1e-5),
    "vit_small_patch16_224, registers with positions": dict(reg_tokens=2),
    "vit_small_patch16_224, map": dict(global_pool="map", class_token=False),
    "vit_small_patch16_224, map, registers": dict(global_pool="map", class_token=False, reg_tokens=3),
    "vit_small_patch16_224, pre_norm": dict(pre_norm=True, norm_layer=lambda d, **k: torch.nn.LayerNorm(d, eps=1e-5)),
    "vit_small_patch16_224, gray": dict(in_chans=1),
    "vit_small_patch16_224, no head": dict(num_classes=0),
    "vit_small_patch16_224, no positions": dict(pos_embed="none"),
    "deit_tiny_distilled_patch16_224": {},
    "deit3_small_patch16_224": {},
    "vit_small_patch14_dinov2": dict(img_size=224, num_classes=10),
    "vit_small_patch14_reg4_dinov2": dict(img_size=224, num_classes=10),
    "vit_giant_patch14_dinov2": dict(img_size=56, depth=2, num_classes=10),
    "vit_tiny_r_s16_p8_224": {},
    "vit_small_r26_s32_224": {},
    "vit_base_r50_s16_224": {},
    "vit_large_r50_s32_224": {},
    "vit_huge_patch14_224": dict(depth=2),
    "vit_giant_patch14_224": dict(depth=2),
    "vit_gigantic_patch14_224": dict(depth=2),
    "vit_base_patch16_siglip_224": dict(num_classes=10, depth=3),
    "vit_so400m_patch14_siglip_224": dict(depth=2, num_classes=10),
    "vit_base_patch16_clip_224": dict(depth=3, num_classes=10),
    "vit_medium_patch16_gap_256": {},
    "vit_betwixt_patch16_reg4_gap_256": {},
}
FAMILIES = (  # with timm's config.json, at depth 2 and 16 or 28 patches
    "vit_small_patch16_dinov3_qkvb",
    "vit_base_patch16_dinov3",
    "vit_small_patch16_lingbot",
    "vit_pe_core_tiny_patch16_384",
    "vit_pe_spatial_tiny_patch16_512",
    "vit_small_patch16_rope_224",
    "vit_small_patch16_rope_mixed_ape_224",
    "vit_medium_patch16_rope_reg1_gap_256",
    "eva_giant_patch14_224",
    "eva02_tiny_patch14_224",
    "eva02_base_patch14_224",
    "eva02_enormous_patch14_clip_224",
    "beit_base_patch16_224",
    "beitv2_base_patch16_224",
    "beit3_base_patch16_224",
    "aimv2_large_patch14_224",
    "vit_base_patch16_rpn_224",
    "naflexvit_base_patch16_gap",
    "naflexvit_base_patch16_siglip",
)
TOWERS = {  # of transformers, at depth 2 and the width of S
    "Dinov2Model": {},
    "Dinov2WithRegistersModel": {},
    "DINOv3ViTModel": dict(num_register_tokens=4),
    "IJepaForImageClassification": {},
    "BeitModel": dict(use_relative_position_bias=True),
    "CLIPVisionModel": {},
    "SiglipVisionModel": {},
}
TEXTS = {  # of transformers, at depth 2: widths and heads
    "CLIPTextModelWithProjection": ((512, 8), (768, 12), (1280, 20)),
    "SiglipTextModel": ((768, 12), (1152, 16)),
    "Siglip2TextModel": ((1024, 16),),
}
VILT = {  # the same: a size of pictures
    "ViltForQuestionAnswering": (384, 384),
    "ViltForImageAndTextRetrieval": (384, 608),
    "ViltModel": (224, 320),
}
DEPTH = {"depth_anything": (518, 686), "dpt": (384, 384), "vitpose": (256, 192)}


def randomize(model, seed=0):
    """Gives every parameter random numbers near what training leaves, so that nothing passes by being zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            one = (name.endswith("weight") and parameter.ndim == 1) or "gamma" in name
            parameter.copy_(1 + 0.1 * noise if one else 0.02 * noise if "head" not in name else 0.05 * noise)
    return model.eval()


def ours(path, size, **options):
    model = keras_vit.from_checkpoint(path, image_size=size, **options)
    return keras.Model(model.get_layer("rescale").output, model.output)


def difference(body, x, theirs):
    return compared(body(np.ascontiguousarray(x.transpose(0, 2, 3, 1))), theirs)


def compared(mine, theirs):
    mine = keras.ops.convert_to_numpy(mine)
    return {"max_abs_diff": float(np.abs(mine - theirs).max()), "max_abs_logit": float(np.abs(theirs).max())}


def timm_case(name, folder, size=None, options=None, heads=None, **ours_options):
    options = dict(options or {})
    model = randomize(timm.create_model(name, **options))
    path = pathlib.Path(folder) / "model.safetensors"
    safetensors.torch.save_file({k: v.contiguous() for k, v in model.state_dict().items()}, path)
    if size is not None:  # timm's own resizing, of the same weights
        resized = timm.create_model(name, **options, img_size=size)
        state = timm.models.vision_transformer.checkpoint_filter_fn(safetensors.torch.load_file(path), resized)
        resized.load_state_dict(state)
        model = resized.eval()
    if options.get("pos_embed") == "none":
        ours_options["position"] = None  # a bare file without positions is refused otherwise
    size = size or model.patch_embed.img_size
    size = (size, size) if isinstance(size, int) else size
    x = np.random.default_rng(0).normal(size=(2, options.get("in_chans", 3), *size)).astype("float32")
    with torch.no_grad():
        theirs = model(torch.tensor(x)).numpy()
    return difference(ours(path, size, num_heads=heads or model.blocks[0].attn.num_heads, **ours_options), x, theirs)


def hub_case(kind, folder, size, **config):
    configuration = getattr(transformers, kind.split("For")[0].removesuffix("Model") + "Config")(
        num_labels=10, **config
    )
    model = randomize(getattr(transformers, kind)(configuration))
    model.save_pretrained(folder)
    size = (size, size) if isinstance(size, int) else size
    x = np.random.default_rng(0).normal(size=(2, 3, *size)).astype("float32")
    resize = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters and kind != "BeitModel"
    with torch.no_grad():
        out = model(torch.tensor(x), **({"interpolate_pos_encoding": True} if resize else {}))
    if hasattr(out, "logits"):
        theirs = out.logits.numpy()
    else:
        theirs = (out.pooler_output if kind in TOWERS else out.last_hidden_state[:, 0]).numpy()
    return difference(ours(folder, size), x, theirs)


def text_case(kind, folder, width, heads):
    config = dict(hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, num_hidden_layers=2)
    model = randomize(getattr(transformers, kind)(getattr(transformers, f"{kind.split('Model')[0]}Config")(**config)))
    model.save_pretrained(folder)
    ids = np.random.default_rng(0).integers(1, 30000, size=(2, model.config.max_position_embeddings))
    ids[:, -5:] = model.config.vocab_size - 1  # the end of CLIP
    with torch.no_grad():
        out = model(torch.tensor(ids))
    theirs = (out.text_embeds if "Projection" in kind else out.pooler_output).numpy()
    return compared(keras_vit.from_checkpoint(folder, part="text")(ids), theirs)


def vilt_case(kind, folder, size):
    """Compares answers to a text of nine words, which is filled to forty."""
    model = randomize(getattr(transformers, kind)(transformers.ViltConfig(num_hidden_layers=2, num_labels=3129)))
    model.save_pretrained(folder)
    rng = np.random.default_rng(0)
    x, ids = rng.normal(size=(2, 3, *size)).astype("float32"), rng.integers(1, 30000, size=(2, 40))
    ids[:, 9:] = 0
    with torch.no_grad():
        out = model(torch.tensor(ids), torch.tensor(ids != 0), pixel_values=torch.tensor(x))
    theirs = (out.logits if hasattr(out, "logits") else out.pooler_output).numpy()
    pixels = x.transpose(0, 2, 3, 1) * 127.5 + 127.5
    return compared(keras_vit.from_checkpoint(folder, image_size=size)({"images": pixels, "texts": ids}), theirs)


def depth_case(kind, folder, size):
    x = np.random.default_rng(0).normal(size=(1, *size, 3)).astype("float32")
    theirs = depth_models.answers(getattr(depth_models, kind)(folder), x)
    return compared(ours(folder, size)(x)[..., 0] if theirs.ndim == 3 else ours(folder, size)(x), theirs)


def family_case(name):
    """Returns the outcome of `coverage.py` for one of timm's architectures."""
    found = coverage.measured(name)
    if found["with_config"] != "right" or found["sizes"] < 2:
        raise ValueError(str(found))
    return {"max_abs_diff": found["largest_difference"]}


def main():
    rows = {}
    cases = [(f"{name}, {size}", dict(name=name, size=size)) for name in NAMES.values() for size in SIZES]
    cases += [(name, dict(name=name.split(",")[0], options=o)) for name, o in KINDS.items()]
    for name in ("deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "vit_tiny_r_s16_p8_224"):
        cases.append((f"{name}, (224, 320)", dict(name=name, size=(224, 320))))
    for label, case in cases:
        with tempfile.TemporaryDirectory() as folder:
            rows[f"timm {label}"] = report(label, lambda: timm_case(folder=folder, **case))  # noqa: B023
    for name in FAMILIES:
        rows[f"timm {name}, depth 2, square and wide"] = report(name, lambda: family_case(name))  # noqa: B023
    tower = dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_hidden_layers=2, patch_size=16)
    for kind, more in TOWERS.items():
        for size in (224, (224, 320)):
            with tempfile.TemporaryDirectory() as folder:
                case = dict(image_size=224, **tower, **more)
                rows[f"transformers {kind}, {size}"] = report(kind, lambda: hub_case(kind, folder, size, **case))  # noqa: B023
    widths = {"Ti": (192, 3), "S": (384, 6), "B": (768, 12)}
    for label, (width, heads) in widths.items():
        for size in SIZES:
            sizes = dict(hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width)
            with tempfile.TemporaryDirectory() as folder:
                row = report(label, lambda: hub_case("ViTForImageClassification", folder, size, **sizes))  # noqa: B023
            rows[f"transformers ViT {label}, {size}"] = row
    small = dict(hidden_size=192, num_attention_heads=3, intermediate_size=768)
    for kind in ("DeiTForImageClassificationWithTeacher", "DeiTForImageClassification", "ViTModel", "DeiTModel"):
        for size in (224, (224, 320)):
            with tempfile.TemporaryDirectory() as folder:
                rows[f"transformers {kind}, {size}"] = report(kind, lambda: hub_case(kind, folder, size, **small))  # noqa: B023
    for options in (
        dict(hidden_act="gelu_new"),
        dict(qkv_bias=False),
        dict(num_attention_heads=12, layer_norm_eps=1e-3),
    ):
        with tempfile.TemporaryDirectory() as folder:
            row = report(options, lambda: hub_case("ViTForImageClassification", folder, 224, **{**small, **options}))  # noqa: B023
        rows[f"transformers ViT Ti, {options}"] = row
    for kind, sizes in TEXTS.items():
        for width, heads in sizes:
            with tempfile.TemporaryDirectory() as folder:
                row = report(kind, lambda: text_case(kind, folder, width, heads))  # noqa: B023
            rows[f"transformers {kind}, {width} wide, depth 2"] = row
    for kind, size in VILT.items():
        with tempfile.TemporaryDirectory() as folder:
            rows[f"transformers {kind}, {size}, depth 2"] = report(kind, lambda: vilt_case(kind, folder, size))  # noqa: B023
    for kind, size in DEPTH.items():
        with tempfile.TemporaryDirectory() as folder:
            rows[f"transformers {kind}, {size}, depth 2"] = report(kind, lambda: depth_case(kind, folder, size))  # noqa: B023
    for name, case in {**object_answers.cases(), **roboflow_answers.cases()}.items():
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = report(name, lambda: case(folder))  # noqa: B023
        added(rows)
    if not WORDS:
        print(json.dumps({**about(*PACKAGES), "cases": rows}, indent=2))


def added(rows):
    """Writes rows of the cases with words into the file, which has the others already."""
    if WORDS:
        whole, stated = json.loads(RESULTS.read_text()), about(*PACKAGES)
        whole["cases"] |= {name: row | stated for name, row in rows.items() if row}
        RESULTS.write_text(json.dumps(whole, indent=2) + "\n")


def report(label, case):
    if WORDS and not any(word in str(label) for word in WORDS):
        return None
    try:
        row = case()
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {error}"}
    print(label, row, file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    main()
