"""The house: who imports whom, who tests whom, what is public, how long a file may be."""

import ast
import pathlib
import re
import subprocess
import sys

import keras_vit
from tests.marks import slow

ROOT = pathlib.Path(keras_vit.__file__).parent
# The only ones that may import it.
NEEDS_TENSORFLOW = {"data", "export", "training/devices", "explain/relevance", "utils/keras_private"}
# Imported where they are used, never on top.
HEAVY = {
    "PIL", "ai_edge_litert", "fastapi", "gradio", "huggingface_hub", "jinja2", "keras_cv", "matplotlib",
    "nncf", "openvino", "pycocotools", "sentencepiece", "skimage", "sklearn", "starlette", "tensorboard",
    "tensorflow_datasets", "tokenizers", "torch", "umap", "uvicorn",
}  # fmt: skip
# All that layers may import.
CORE = {"keras", "keras_vit", "numpy", "collections", "functools", "inspect", "math", "re", "typing", "warnings"}
PUBLIC = """
    AdaptiveBlock AdaptiveHead AddToImage AffineSampling AnomalyDetector Answer Augment BoxesAndMasks Caption
    CaptionClips Classify ClassifyClips Compress Contrast ContrastClips ConvStem CrossAttention DPTHead Data
    DecoderBlock DeformableAttention
    DeformableDecoder Depth DepthHead Detect DetectClips Distiller EndPool FiLMDecoder FrameMean Frames Generate HYBRIDS
    InstanceMasks JobConv2D JobInput LayerScale MLP MaskDecoder MaskedAutoencoder MaskedLoss MergingBlock
    MultiHeadSelfAttention Objectness Optim PaddingMask PatchDropout PatchEncoder Patches PixelHead
    PlaceBoxes PointBoxes PoseHead Positions Pretrain PretrainClips QueryDecoder QueryLogits QueryMap QueryMasks
    QueryTokens Recipe Regress RelativePositions ResNetStem Rescale Restore RotaryPositions Segment
    SetBoxes SetHead ShiftImage Similarity StandardizedConv2D StochasticDepth Task TextureTransfer TimeEmbedding
    TimeSteps TokenPool TopBoxes TransformerBlock Translate Tubelets Unmerge VARIANTS Words add_lora attention_maps
    attention_relevance attention_rollout augment by_frames calibrate captioner check_data class_names
    compare_layers count_macs cross_validate datasets detect dit embed_folder estimate_depth
    estimate_poses evaluate example_queries export_onnx export_openvino export_saved_model export_tflite
    export_writer features fit freeze from_checkpoint from_pretrained from_recipe generate_text inflated
    inspect_index instance_map knn learn_words list_checkpoints list_recipes list_variants load_index load_recipe
    load_run load_weights merge_lora merge_tokens nearest pca_image plot_attention plot_history predict
    predictor preprocess probe prompt_vectors push_to_hub report sample save_checkpoint segment segment_prompts sweep
    text_decoder text_tower tokenizer transfer two_towers video_vit vilt vit zero_shot zero_shot_classifier
    zero_shot_detector zero_shot_segmenter
"""

FILES = sorted(ROOT.rglob("*.py"))
MODULES = [path.relative_to(ROOT).with_suffix("") for path in FILES]


def floors():
    """Returns the floor of each part of the package, from the table of CONTRIBUTING.md."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE)
    return {name: int(floor) for floor, names in rows for name in re.findall(r"`(\w+)(?:/|\.py)`", names)}


def imports(module, top_only=False):
    """Returns the modules that a file imports: `keras_vit` ones by their name inside it."""
    tree = ast.parse((ROOT / module.with_suffix(".py")).read_text())
    found = set()
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_part_is_on_a_floor():
    assert {module.parts[0] for module in MODULES} == set(floors())


def test_imports_go_down():
    floor, up = floors(), []
    for module in MODULES:
        here = module.parts[0]
        for dotted in imports(module):
            first, *rest = dotted.split(".")
            there = rest[0] if first == "keras_vit" and rest and rest[0] in floor else here
            if there != here and floor[there] >= floor[here]:
                up.append(f"{module} imports {dotted}")
    assert not up


def test_no_folder_has_a_circle():
    """Files of one folder do not import each other in a loop; imports inside functions count."""
    names = {"keras_vit." + ".".join(module.parts): module for module in MODULES if module.name != "__init__"}
    down = {}
    for name, module in names.items():
        dotted = imports(module)
        down[name] = {one for full in dotted for one in (full, full.rpartition(".")[0]) if one in names}
    for room in floors():
        inside = {name for name in names if name.split(".")[1] == room}
        left = {name: down[name] & inside for name in inside}
        while free := {name for name, below in left.items() if not below}:
            left = {name: below - free for name, below in left.items() if name not in free}
        assert not left, f"{room} has a circle among {sorted(left)}"


def test_heavy_libraries_stay_where_they_are_needed():
    found = []
    for module in MODULES:
        roots = {dotted.split(".")[0] for dotted in imports(module)}
        if "tensorflow" in roots and not {module.parts[0], module.as_posix()} & NEEDS_TENSORFLOW:
            found.append(f"{module} imports tensorflow")
        if heavy := {dotted.split(".")[0] for dotted in imports(module, top_only=True)} & HEAVY:
            found.append(f"{module} imports {', '.join(heavy)} on top")
        if module.parts[0] == "layers" and (other := roots - CORE):
            found.append(f"{module} imports {', '.join(other)}")
    assert not found


def test_modules_have_their_tests():
    """Those of more than 40 lines."""
    here = pathlib.Path(__file__).parent
    long = [module for module in MODULES if module.name != "__init__" and lines(ROOT / module.with_suffix(".py")) > 40]
    mirrors = [here / module.parent / f"test_{module.name.strip('_')}.py" for module in long]
    assert not [str(mirror) for mirror in mirrors if not mirror.exists()]


def test_private_attributes_of_others_are_in_one_file():
    found = []
    for module in MODULES:
        if module.name != "keras_private":
            tree = ast.parse((ROOT / module.with_suffix(".py")).read_text())
            attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and private(node)]
            found += [f"{module}: {name}" for name in attributes]
    assert not found


def private(node):
    """Returns whether an attribute is private, to another object than `self` or `cls`."""
    owner = node.value.id if isinstance(node.value, ast.Name) else None
    documented = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples, and `os._exit`
    begins = node.attr.startswith("_") and not node.attr.startswith("__")
    return begins and node.attr not in documented and owner not in ("self", "cls")


def test_one_attribute_a_line():
    """An assignment of several attributes of `self` at once hides them."""
    found = []
    for module in MODULES:
        for node in ast.walk(ast.parse((ROOT / module.with_suffix(".py")).read_text())):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Tuple)
                and sum(map(own, ast.walk(node.targets[0]))) > 1
            ):
                found.append(f"{module}:{node.lineno}")
    assert not found


def own(node):
    stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return stored and isinstance(node.value, ast.Name) and node.value.id == "self"


def lines(path):
    return len(path.read_text().splitlines())


def test_files_are_short():
    recipes = (ROOT.parent / "recipes").glob("*.py")
    tests = pathlib.Path(__file__).parent.rglob("*.py")
    long = {str(path): lines(path) for path in [*FILES, *tests, *recipes] if lines(path) > 300}
    assert not long, f"files that are two things, with their lines: {long}"


def test_public_names():
    modules = {path.stem for path in ROOT.iterdir()} | {"optimizers"}
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
    said = lambda text: [line for line in text.splitlines() if not line.startswith(("I0", "WARNING: All"))]  # noqa: E731
    assert said(ours.stderr) == said(keras_alone.stderr)


def test_the_way_from_a_recipe_to_a_step_is_short():
    """The files that `docs/how_it_trains.md` lists: at most 18, and 2,670 lines."""
    page = (ROOT.parent / "docs" / "how_it_trains.md").read_text()
    paths = re.findall(r"^\| \d+ \| \[(.+?)\]", page, re.MULTILINE)
    lengths = {path: lines(ROOT.parent / path) for path in paths}
    assert len(lengths) == len(paths) <= 18 and sum(lengths.values()) <= 2670, lengths
