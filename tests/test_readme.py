"""The Python of the README and of the pages runs, from top to bottom, at small size."""

import ast
import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import keras_vit
from tests.commands.helpers import run as command
from tests.marks import slow

pytest.importorskip("tensorflow")

ROOT = pathlib.Path(__file__).parents[1]


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
    """A folder with the files that a reader of the README has: single images, and one sub-folder for each class."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    names = [f"pictures/{kind}/{i}.png" for kind in ("cat", "dog") for i in range(10)]
    for name in ["cat.jpg", "truck.png", *names]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 60, 3), "uint8")).save(tmp_path / name)
    return tmp_path


def test_the_readme_runs(pictures, eagerly):
    short = '{"optim.epochs": 20}', '{"optim.epochs": 3, "data.limit": 64}'
    assert len(blocks("README.md")) >= 7 and any(short[0] in block for block in blocks("README.md"))
    names = run("README.md", [short])
    assert names["mine"].output_shape == (None, 2)
    assert names["threes"].shape == names["rollout"].shape == (8, 4, 4)
    for file in ("digits.keras", "digits.tflite", "digits_saved_model", "curves.png", "attention.png"):
        assert (pictures / file).exists(), file


def test_the_readme_is_short_and_marks_its_test_command():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 240
    (marked,) = re.findall(r"<!-- .ci/run runs the next block -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert marked.rstrip().endswith("-m pytest -q")
    assert "keras_vit tour digits" in re.search(r"```bash\n(.*?)```", text, re.DOTALL)[1]


def test_the_page_of_models_runs(tmp_path, monkeypatch, eagerly):
    monkeypatch.chdir(tmp_path)
    names = run("docs/models.md")
    assert names["mine"].output_shape == names["hybrid"].output_shape == names["light"].output_shape == (None, 10)


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


@pytest.mark.parametrize("page", ["README.md", "docs/export.md", "docs/models.md"])
def test_a_block_that_writes_can_run_again(page):
    for node in ast.walk(ast.parse("\n".join(blocks(page)))):
        called = getattr(getattr(node, "func", None), "attr", "")
        if called.startswith("export_") or called == "save_checkpoint":
            assert "overwrite" in {keyword.arg for keyword in node.keywords}, ast.unparse(node)
