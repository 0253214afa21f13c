"""The README's notebook code runs, from top to bottom, at small size."""

import pathlib
import re

import pytest

pytest.importorskip("tensorflow")

README = (pathlib.Path(__file__).parents[1] / "README.md").read_text()


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # as a notebook does
    assert (tmp_path / "digits.keras").exists() and (tmp_path / "digits.tflite").exists()
    assert (tmp_path / "attention.png").exists()


def test_named_files_exist():
    root = pathlib.Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (root / target).exists(), target
