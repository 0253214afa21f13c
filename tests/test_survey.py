"""The page that maps a survey: what a row says was reached stands in a recipe or in a file of results."""

import json
import pathlib
import re

import pytest

import keras_vit

ROOT = pathlib.Path(__file__).parents[1]
FOUND = json.loads((ROOT / "benchmarks/results/survey.json").read_text())
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/survey.md").read_text().splitlines()
    if line.startswith("| [") and line.count("|") == 5
]
FIGURES = [(command, figure) for _, _, command, figure in ROWS if re.search(r"\d\.\d|\d %", figure)]


def reached(command):
    """Returns the numbers that are known of a command: of its recipe, or of the file of results."""
    known = [value for value in FOUND.get(command, {}).values() if isinstance(value, float)]
    words = command.split()
    if words[0] == "fit" and len(words) == 2:
        recipe = keras_vit.load_recipe(words[1]).reached
        if recipe:
            known += [value for _, value in recipe.scores] + [recipe.test_accuracy]
    return [value for value in known if value is not None]


@pytest.mark.parametrize("command, figure", FIGURES)
def test_figures_were_reached(command, figure):
    command = command.strip("`")
    number, share = re.search(r"(\d+(?:\.\d+)?)( %)?", figure).groups()
    digits = len(number.partition(".")[2])
    known = [round(100 * value if share else value, digits) for value in reached(command)]
    assert float(number) in known, (command, figure, known)


def test_the_page_has_all_systems():
    page = (ROOT / "docs/survey.md").read_text()
    systems = """2010.11929 2012.12877 2005.12872 2010.04159 1904.04745 2006.04139 2012.00364 1904.01766 1812.02707
        2102.12092 2112.10752 1908.07490 1908.08530 2302.05442 1706.03762 1810.04805 2005.14165 1910.10683
        2101.03961 1910.04867
        1610.02391 1506.02025"""
    assert [paper for paper in systems.split() if paper not in page] == []
    assert len(FIGURES) > 10
