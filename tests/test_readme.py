"""The README's notebook code runs, from top to bottom, at small size."""

import pathlib
import re

import pytest

pytest.importorskip("tensorflow")

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # as a notebook does
    assert (tmp_path / "digits.keras").exists() and (tmp_path / "digits.tflite").exists()
    assert (tmp_path / "attention.png").exists()


def test_the_export_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "export.md").read_text(), re.DOTALL)
    for block in [*blocks, *blocks]:  # as somebody does who runs a cell again
        exec(compile(block, "export.md", "exec"), names)
    told = capsys.readouterr().out
    assert "mnist.tflite: dynamic" in told and len(re.findall(r"^\d+\.\d%  \w+  .*block_", told, re.MULTILINE)) >= 3
