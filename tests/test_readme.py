"""The Python of the README and of the pages runs, from top to bottom, at small size; and their form."""

import ast
import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit import layers
from tests.commands.helpers import run as command
from tests.marks import QUICKLY, fuller, slow

pytest.importorskip("tensorflow")

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run(page, changes=()):
    """Executes a page's blocks in the order of the page, as a notebook does, and returns their names."""
    names = {}
    for block in blocks(page):
        for old, new in changes:
            block = block.replace(old, new)
        exec(compile(block, page, "exec"), names)
    return names


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """A folder with the files that a reader of the first steps has: single images, and a subfolder for each class."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    names = [f"pictures/{kind}/{i}.png" for kind in ("cat", "dog") for i in range(10)]
    for name in ["cat.jpg", "truck.png", *names]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 60, 3), "uint8")).save(tmp_path / name)
    return tmp_path


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run("README.md")
    assert "[0 1 2 3 4]" in capsys.readouterr().out and (tmp_path / "mnist.tflite").exists()


def test_the_readme_shows_code_at_once_and_marks_its_test_command():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 140
    assert re.search(r"```python\n(.*\n){1,8}?```", "\n".join(text.splitlines()[:30]))
    (marked,) = re.findall(r"<!-- .ci/run runs the next block -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert marked.rstrip().endswith("-m pytest -q")
    assert "-m keras_vit tour digits" in text


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *PAGES])
def test_lines_and_cells_are_short(page):
    prose = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE).splitlines()
    cells = [cell.strip() for line in prose if line.startswith("|") for cell in line.strip("|").split("|")]
    assert not [line for line in prose if len(line) > 160]
    assert not [cell for cell in cells if len(cell) > 120]


def test_the_first_steps_run(pictures, eagerly):
    short = [
        ('{"optim.epochs": 20}', '{"optim.epochs": 3, "data.limit": 64, "model.depth": 1}'),
        ("depth=4", "depth=1"),
    ]
    assert all(any(old in block for block in blocks("docs/first_steps.md")) for old, _ in short)
    names = run("docs/first_steps.md", short)
    assert names["mine"].output_shape == (None, 2)
    assert names["threes"].shape == names["rollout"].shape == (8, 4, 4)
    for file in ("digits.keras", "digits.tflite", "digits_saved_model", "curves.png", "attention.png"):
        assert (pictures / file).exists(), file


@slow
def test_the_100_lines_train(tmp_path, monkeypatch):
    """In full with KERAS_VIT_SLOW=1, else for one epoch of a few images."""
    page = "docs/train_in_100_lines.md"
    monkeypatch.chdir(tmp_path)
    assert len("".join(blocks(page)).splitlines()) <= 100
    short = [("EPOCHS = 30", "EPOCHS = 4"), ("[1258, 1438]", "[128, 192]"), ("jit_compile=True", "jit_compile=False")]
    assert all(any(old in block for block in blocks(page)) for old, _ in short)
    names = run(page, short if QUICKLY else ())
    assert (tmp_path / "my_digits.keras").exists()
    assert QUICKLY or names["accuracy"] > 0.95


def test_the_page_of_bands_runs(tmp_path, monkeypatch, capsys, eagerly):
    pytest.importorskip("tifffile")
    monkeypatch.chdir(tmp_path)
    names = run("docs/bits_and_bands.md")
    said = capsys.readouterr().out
    assert "bands: 1 from " in said and "True" in said and len(names["history"]["loss"]) == 2


def test_the_page_of_models_runs(tmp_path, monkeypatch, eagerly):
    monkeypatch.chdir(tmp_path)
    names = run("docs/models.md")
    assert names["hybrid"].output_shape == names["light"].output_shape == (None, 10)


@fuller
def test_the_page_by_hand_runs(tmp_path, monkeypatch, capsys, eagerly):
    """It names every public layer, too."""
    monkeypatch.chdir(tmp_path)
    page = "docs/by_hand.md"
    short = [("(data), 30", "(data), 1"), ("order[:1400]", "order[:128]"), ("order[1400:]", "order[-64:]")]
    short += [("jit_compile=True", "jit_compile=False"), ("range(4)", "range(2)")]
    assert all(any(old in block for block in blocks(page)) for old, _ in short)
    names = run(page, short if QUICKLY else ())
    assert names["maps"].shape == (2 if QUICKLY else 4, 32, 4, 17, 17) and "digit " in capsys.readouterr().out
    for file in ("by_hand.keras", "by_hand.tflite", "saved_by_hand", "by_hand.png"):
        assert (tmp_path / file).exists(), file
    assert QUICKLY or names["model"].evaluate(names["images"][names["test"]], names["labels"][names["test"]])[1] > 0.9
    written = (ROOT / page).read_text()
    assert not [name for name in layers.__all__ if f"`{name}`" not in written and f"`{name}(" not in written]


def test_the_page_of_your_own_task_runs(tmp_path, monkeypatch, capsys, eagerly):
    monkeypatch.chdir(tmp_path)
    toy, afterwards = blocks("docs/tasks/own.md")
    (tmp_path / "toy.py").write_text(toy)
    command("fit", "toy.py", "optim.epochs=1", "optim.warmup_epochs=0", "data.limit=64")
    exec(compile(afterwards, "docs/tasks/own.md", "exec"), {"keras_vit": keras_vit})
    assert "mean_error" in capsys.readouterr().out


@slow
def test_the_export_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run("docs/export.md")
    printed = capsys.readouterr().out
    rows = re.findall(r"^\d+\.\d%  \w+  .*block_", printed, re.MULTILINE)
    assert "mnist.tflite: dynamic" in printed and len(rows) >= 3


@pytest.mark.parametrize(
    "page", ["README.md", "docs/first_steps.md", "docs/export.md", "docs/models.md", "docs/by_hand.md"]
)
def test_a_block_that_writes_can_run_again(page):
    for node in ast.walk(ast.parse("\n".join(blocks(page)))):
        called = getattr(getattr(node, "func", None), "attr", "")
        if called.startswith("export_") or called == "save_checkpoint":
            assert "overwrite" in {keyword.arg for keyword in node.keywords}, ast.unparse(node)
