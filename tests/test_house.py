"""The house: who imports whom, who tests whom, what is public, how long a file may be."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

import keras_vit
from tests.marks import slow

ROOT = pathlib.Path(keras_vit.__file__).parent
FLOORS = {
    "checks": -2,  # errors for bad input, which every floor may use
    "checked": -1,  # dataclasses that check their fields
    "evaluation_rule": 0,
    "feeding": 0,
    "files": 0,
    "folders": 0,
    "images": 0,
    "keras_private": 0,
    "machine": 0,
    "metrics": 0,
    "progress": 0,
    "resampling": 0,
    "variants": 0,
    "warned": 0,
    "layers": 1,
    "task": 1,
    "tiles": 1,
    "backbone": 2,
    "labels": 2,
    "models": 2,
    "checkpoints": 3,
    "compiled": 3,
    "counting": 3,
    "data": 3,
    "explain": 3,
    "preprocessing": 3,
    "before_fit": 4,
    "export": 4,
    "merging": 4,
    "plots": 4,
    "pretrained": 4,
    "tasks": 5,
    "config": 6,
    "training": 7,
    "cookbook": 8,
    "optimizers": 8,
    "frozen": 9,
    "runs": 9,
    "trained": 9,
    "predictions": 10,
    "results": 10,
    "calibration": 11,
    "demo": 11,
    "reporting": 11,
    "public": 12,
    "__init__": 13,
    "commands": 13,
    "__main__": 14,
}
# The only ones that may import it.
NEEDS_TENSORFLOW = {"data", "export", "training/devices", "explain/relevance"}
# Imported where they are used, never on top.
HEAVY = {
    "PIL", "ai_edge_litert", "fastapi", "gradio", "huggingface_hub", "jinja2", "keras_cv", "matplotlib",
    "pycocotools", "skimage", "sklearn", "starlette", "tensorboard", "tensorflow_datasets", "torch", "umap", "uvicorn",
}  # fmt: skip
PUBLIC = """
    AddToImage AnomalyDetector Augment Classify ConvStem CrossAttention DPTHead Data DecoderBlock Detect Distiller
    HYBRIDS LayerScale MLP MaskDecoder MaskedAutoencoder MaskedLoss MergingBlock MultiHeadSelfAttention Optim
    PatchDropout PatchEncoder Patches PixelHead PointBoxes Positions Pretrain QueryDecoder Recipe RelativePositions
    Rescale ResNetStem Restore RotaryPositions Segment SetBoxes SetHead StandardizedConv2D StochasticDepth Task
    TokenPool TransformerBlock Unmerge VARIANTS
    add_lora attention_maps attention_relevance attention_rollout calibrate check_data class_names compare_layers
    count_macs datasets embed_folder evaluate export_onnx export_saved_model export_tflite features fit freeze
    from_checkpoint from_pretrained from_recipe knn list_checkpoints list_recipes list_variants load_index load_recipe
    load_run load_weights merge_lora merge_tokens nearest pca_image plot_attention plot_history predict preprocess probe
    report save_checkpoint vit
"""

FILES = sorted(ROOT.rglob("*.py"))
MODULES = [path.relative_to(ROOT).with_suffix("") for path in FILES]


def imports(path, top_only=False):
    """Returns the modules that a file imports: `keras_vit` ones by their name inside it."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def floor_of(dotted):
    """Returns the part of the house that `keras_vit.part...` lies in, if it is ours."""
    first, *rest = dotted.split(".")
    return rest[0] if first == "keras_vit" and rest and rest[0] in FLOORS else None


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_go_down(module):
    here = module.parts[0]
    for dotted in imports(ROOT / module.with_suffix(".py")):
        there = floor_of(dotted)
        if there and there != here:
            assert FLOORS[there] < FLOORS[here], f"{module} (floor {FLOORS[here]}) imports {dotted}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_heavy_libraries_stay_where_they_are_needed(module):
    path = ROOT / module.with_suffix(".py")
    roots = {dotted.split(".")[0] for dotted in imports(path)}
    assert "tensorflow" not in roots or {module.parts[0], module.as_posix()} & NEEDS_TENSORFLOW
    assert not {dotted.split(".")[0] for dotted in imports(path, top_only=True)} & HEAVY
    if module.parts[0] in ("layers", "models"):
        allowed = {"keras", "keras_vit", "numpy"}  # NumPy for tables and settings
        assert roots <= allowed | {"collections", "functools", "inspect", "math", "re", "typing", "warnings"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_test(module):
    text = (ROOT / module.with_suffix(".py")).read_text()
    if module.name == "__init__" or len(text.splitlines()) <= 40:
        return
    mirror = pathlib.Path(__file__).parent / module.parent / f"test_{module.name.strip('_')}.py"
    assert mirror.exists(), f"{module}.py has no {mirror}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_private_attributes_of_others_are_in_one_file(module):
    if module.name != "keras_private":
        tree = ast.parse((ROOT / module.with_suffix(".py")).read_text())
        foreign = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and private(node)]
        assert not foreign, f"{module} uses private attributes of another object: {', '.join(foreign)}"


def private(node):
    """Returns whether an attribute is private, to another object than `self` or `cls`."""
    owner = node.value.id if isinstance(node.value, ast.Name) else None
    documented = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples, and `os._exit`
    begins = node.attr.startswith("_") and not node.attr.startswith("__")
    return begins and node.attr not in documented and owner not in ("self", "cls")


def test_every_file_is_on_a_floor_and_short():
    assert {module.parts[0] for module in MODULES} == set(FLOORS)
    recipes = (ROOT.parent / "recipes").glob("*.py")
    tests = pathlib.Path(__file__).parent.rglob("*.py")
    lengths = {str(path): len(path.read_text().splitlines()) for path in [*FILES, *tests, *recipes]}
    long = {path: lines for path, lines in lengths.items() if lines > 300}
    assert not long, f"files that are two things, with their lines: {long}"


def test_public_names():
    modules = {path.stem for path in ROOT.iterdir()}
    found = {name for name in vars(keras_vit) if not name.startswith("_")} - modules
    assert found == set(PUBLIC.split())
    for name in found - {"VARIANTS", "HYBRIDS"}:
        assert getattr(keras_vit, name).__doc__, f"{name} has no docstring"


@slow
def test_importing_is_quiet_and_light():
    script = (
        "import sys, keras; before = keras.config.floatx(), keras.config.dtype_policy().name\n"
        "import random, numpy; random.seed(1); numpy.random.seed(1)\n"
        "states = random.getstate(), numpy.random.get_state()[1].sum()\n"
        "known = set(sys.modules); import keras_vit\n"
        f"heavy = {HEAVY - {'PIL'} | {'tyro', 'pandas'}!r} & (set(sys.modules) - known)\n"
        "assert not heavy, heavy\n"
        "assert before == (keras.config.floatx(), keras.config.dtype_policy().name)\n"
        "assert states == (random.getstate(), numpy.random.get_state()[1].sum())\n"
    )
    keras_alone = subprocess.run([sys.executable, "-c", "import keras"], capture_output=True, text=True)
    ours = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == keras_alone.stdout
    lines = lambda text: [line for line in text.splitlines() if not line.startswith(("I0", "WARNING: All"))]  # noqa: E731
    assert lines(ours.stderr) == lines(keras_alone.stderr)


def test_the_way_from_a_recipe_to_a_step_is_short():
    """The files that `docs/how_it_trains.md` lists: at most 18, and 2,500 lines."""
    page = (ROOT.parent / "docs" / "how_it_trains.md").read_text()
    paths = re.findall(r"^\| \d+ \| \[(.+?)\]", page, re.MULTILINE)
    lines = {path: len((ROOT.parent / path).read_text().splitlines()) for path in paths}
    assert len(lines) == len(paths) <= 18 and sum(lines.values()) <= 2500, lines
