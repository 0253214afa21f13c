"""Which of timm's Vision Transformers are read: each architecture with random weights, depth 2, beside live timm.

Every architecture behind a published tag of the modules below is saved twice, with timm's `config.json` and bare, and
loaded at its own grid and at a rectangle. Needs torch and timm:

python benchmarks/coverage.py > benchmarks/results/coverage.json

`python benchmarks/coverage.py benchmarks/results/coverage.json` prints the table of `docs/checkpoints.md`.
"""

import collections
import gc
import itertools
import json
import multiprocessing
import pathlib
import platform
import re
import sys
import tempfile
import warnings
from importlib.metadata import version

import numpy as np

MODULES = (
    "vision_transformer", "vision_transformer_hybrid", "vision_transformer_relpos", "vision_transformer_sam", "deit",
    "beit", "eva", "naflexvit", "cait", "xcit", "qwen3_vit", "deepseek_vit", "gemma4_vit",
)  # fmt: skip
FAMILIES = {  # rows of the table, by the architecture's name; the first that is found in it
    "DINOv3": "dinov3",
    "LingBot": "lingbot",
    "Perception Encoder": "_pe_",
    "RoPE-ViT": "rope",
    "EVA-02": "^eva02",
    "EVA-01": "^eva_giant",
    "BEiT-3": "^beit3",
    "BEiT, BEiT v2": "^beit",
    "AIMv2": "^aimv2",
    "NaFlexViT": "^naflexvit",
    "DINOv2": "dinov2",
    "CLIP": "clip",
    "SigLIP, SigLIP 2": "siglip",
    "DeiT, DeiT-III": "^deit",
    "hybrids": "_r_|_r26_|_r50_|resnet",
    "other networks": "^(cait|xcit|qwen|deepseek|gemma|samvit)|relpos|sapiens|mci",
    "plain ViT": "",
}
STEPS = {"deepseek": 14, "gemma4": 48}  # pixels that must divide an image, where the name does not say it
MOST = 10**9  # parameters
TOLERANCE = 1e-4  # of the outputs, or of their largest where that is above 1
OUTCOMES = ("right", "warned", "refused", "wrong", "failed")


def main():
    import timm
    from checkout import commit

    published = (timm.list_models(module=module, pretrained=True, include_tags=True) for module in MODULES)
    tags = collections.Counter(tag.partition(".")[0] for tag in itertools.chain.from_iterable(published))
    rows = []
    names = sorted(tags)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=20) as pool:  # returns the memory
        for name, found in zip(names, pool.imap(measured, names), strict=True):
            rows.append({"architecture": name, "tags": tags[name], **found})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    about = {"commit": commit(), "machine": platform.machine()}
    about |= {name: version(name) for name in ("keras", "tensorflow", "torch", "timm")}
    print(json.dumps({**about, "tolerance": TOLERANCE, "rows": rows}, indent=1))


def measured(name):
    """Returns what becomes of an architecture's file with and without its `config.json`."""
    import timm  # before TensorFlow: the other way, their copies of LLVM collide  # isort: skip

    import keras
    import safetensors.torch

    from keras_vit.checkpoints.formats.timm_config import known

    stated = re.search(r"(?:patch|_[sp])(\d+)", name.replace("_s16_p8", "_s16"))
    step = int(stated[1]) if stated else next((s for word, s in STEPS.items() if word in name), 16)
    try:
        theirs, options = created(name, step)
    except Exception as error:  # then only the name can be tried
        return {"with_config": "failed" if known(name) else "refused", "why": f"not built: {short(error)}"}
    randomize(theirs, seed=0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.safetensors"
        state = {key: tensor.contiguous().clone() for key, tensor in theirs.state_dict().items()}
        safetensors.torch.save_file(state, path)
        cases = []
        for size in ((4 * step, 4 * step), (4 * step, 7 * step)):
            try:
                cases.append((size, *expected(theirs, name, options, size, timm)))
            except Exception as error:
                if not cases:
                    return {"with_config": "failed", "why": short(error)}
        config = {"architecture": name, "global_pool": getattr(theirs, "global_pool", "token"),
                  "pretrained_cfg": {k: v for k, v in theirs.pretrained_cfg.items() if k in ("mean", "std", "crop_pct")}
                  | {"input_size": [3, 4 * step, 4 * step]}}  # fmt: skip
        found["bare"], *_, why = outcome(path, cases)
        (path.parent / "config.json").write_text(json.dumps(config, default=list))
        found["with_config"], difference, why_config = outcome(path.parent, cases)
        found |= {} if difference is None else {"largest_difference": float(f"{difference:.1e}")}
    keras.backend.clear_session()
    gc.collect()
    found["sizes"] = len(cases)
    return found | ({"why": why_config or why} if why_config or why else {})


def created(name, step):
    """Returns timm's model at a small size, and the options that made it."""
    import timm
    import torch

    error = None
    size = {"img_size": (4 * step, 4 * step)}
    for options in (dict(depth=2, num_classes=7, **size), dict(depth=2, num_classes=7), dict(num_classes=7)):
        try:
            with torch.device("meta"):
                count = sum(parameter.numel() for parameter in timm.create_model(name, **options).parameters())
            if count > MOST:
                raise ValueError(f"{count:,} parameters")
            return timm.create_model(name, **options).eval(), options
        except (TypeError, ValueError, AssertionError, RuntimeError) as wrong:
            error = wrong
    raise error


def randomize(model, seed):
    """Gives every parameter random numbers near what training leaves."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for key, parameter in model.named_parameters():
        near_one = parameter.ndim == 1 and re.search(r"(norm|bn).*weight|gamma|lambda", key)
        parameter.data = bool(near_one) + 0.03 * torch.randn(parameter.shape, generator=generator)


def expected(theirs, name, options, size, timm):
    """Returns images and timm's logits at a size, with timm's own resizing of the weights."""
    import torch

    model = theirs
    if "img_size" in options and tuple(options["img_size"]) != size:
        model = timm.create_model(name, **options | {"img_size": size}).eval()
        resize = getattr(sys.modules[type(theirs).__module__], "checkpoint_filter_fn", lambda state, model: state)
        model.load_state_dict(resize(dict(theirs.state_dict()), model))
    x = np.random.default_rng(0).normal(size=(2, *size, 3)).astype("float32")
    with torch.no_grad():
        return x, model(torch.tensor(x.transpose(0, 3, 1, 2))).numpy()


def outcome(path, cases):
    """Returns one of `OUTCOMES`, the largest difference of the outputs if there are any, and why."""
    import keras

    import keras_vit

    told, worst = "", 0.0
    for size, x, wanted in cases:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = keras_vit.from_checkpoint(path, image_size=size)
            except ValueError as error:
                return "refused", None, short(error).replace(str(path), "FILE")
            except Exception as error:
                return "failed", None, short(error)
        told = next((short(each.message) for each in caught if issubclass(each.category, UserWarning)), told)
        body = keras.Model(model.get_layer("rescale").output, model.output)
        logits = keras.ops.convert_to_numpy(body(x))
        if logits.shape != wanted.shape:
            return "wrong", None, f"logits of shape {logits.shape}, not {wanted.shape}"
        worst = max(worst, float(np.abs(logits - wanted).max()) / max(1.0, float(np.abs(wanted).max())))
    if worst > TOLERANCE:
        return ("warned" if told else "wrong"), worst, told or "differs, and does not say so"
    return "right", worst, told


def short(error):
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def table(rows):
    """Returns the table of `docs/checkpoints.md`: tags by family, with `config.json` and bare."""
    families = collections.defaultdict(collections.Counter)
    for row in rows:
        family = next(name for name, pattern in FAMILIES.items() if re.search(pattern, row["architecture"]))
        for kind in ("with_config", "bare"):
            for place in (family, "all"):
                families[place][kind, row.get(kind, row["with_config"])] += row["tags"]
        families[family]["tags"] += row["tags"]
        families["all"]["tags"] += row["tags"]
    heads = ("timm's family", "tags", "right", "refused", "wrong", *(f"bare: {kind}" for kind in OUTCOMES[:4]))
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    order = sorted(set(families) - {"all"}, key=lambda name: (name == "other networks", -families[name]["tags"], name))
    for name in (*order, "all"):
        of = families[name]
        cells = [of["with_config", outcome] for outcome in ("right", "refused", "wrong")]
        cells += [of["bare", outcome] for outcome in OUTCOMES[:4]]
        lines.append(f"| {name} | {of['tags']} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(table(json.loads(pathlib.Path(sys.argv[1]).read_text())["rows"]))
    else:
        main()
