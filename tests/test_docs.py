"""The pages: every public name is on one, links have targets, code runs, and the site builds without a warning."""

import html.parser
import importlib.util
import inspect
import json
import os
import pathlib
import pkgutil
import re
import runpy
import shutil
import urllib.parse

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import explain, plots
from tests.marks import slow

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILD = runpy.run_path(str(DOCS / "build.py"))
PAGES = sorted(path for pattern in BUILD["PAGES"] for path in ROOT.glob(pattern) if path.suffix == ".md")
needs_tools = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, BUILD["TOOLS"])),
    reason="zensical and mkdocstrings-python are not installed: pip install -e '.[docs]'",
)


def public(module):
    """Returns the public functions and classes of a package, by name."""
    values = {f"{module.__name__}.{name}": value for name, value in vars(module).items() if not name.startswith("_")}
    return {name: inspect.unwrap(value) for name, value in values.items() if not inspect.ismodule(value)}


def test_every_public_name_is_on_one_page():
    written = [re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE) for page in (DOCS / "api").glob("*.md")]
    shown = [inspect.unwrap(pkgutil.resolve_name(name)) for page in written for name in page]
    names = {**public(keras_vit), **public(explain), **public(plots)}
    wrong = [name for name, value in names.items() if sum(value is other for other in shown) != 1]
    assert not wrong, f"must be on exactly one page of docs/api: {wrong}"


def prose(page):
    return re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Returns the anchors of a page's headings, as code hosts make them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def leads_somewhere(page, link):
    parts = urllib.parse.urlsplit(link)
    if parts.scheme:
        return parts.scheme == "https" and "." in parts.netloc
    target = page.parent / parts.path if parts.path else page
    return target.exists() and (not parts.fragment or parts.fragment in anchors(target))


def test_links_lead_somewhere():
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]*)\)", prose(page))]
    wrong = [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not leads_somewhere(page, link)]
    assert len(links) > 100 and not wrong, wrong


@slow
def test_the_page_of_features_runs(tmp_path, monkeypatch, eagerly):
    pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for file in ["query.png", *[f"photos/{kind}/{i}.png" for kind in ("red", "white") for i in range(4)]]:
        pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(file, rng.integers(0, 256, (40, 50, 3)))
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "features.md").read_text(), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, "features.md", "exec"), names)
    assert len(blocks) >= 4 and all(map(os.path.exists, ["photos.npz", "probe.keras", "pca.png", "detector.keras"]))


@slow
def test_the_page_of_pictures_draws_what_it_shows(tmp_path, monkeypatch, eagerly):
    pytest.importorskip("tensorflow")
    monkeypatch.chdir(tmp_path)
    text, names = (DOCS / "looking.md").read_text(), {}
    assert "[:300]" in text
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block.replace("[:300]", "[:80]"), "looking.md", "exec"), names)  # t-SNE of fewer digits is faster
    shown = re.findall(r"\]\(images/(\w+\.png)\)", text)
    drawn = {path.name for path in tmp_path.glob("*.png")} - {"grad_cam.png"}  # of which the page shows none
    assert sorted(shown) == sorted(drawn) and len(shown) == 16
    assert {name: tuple(x.shape) for name, x in names["maps"].items()} == {
        "block_0": (8, 7, 7, 96), "block_2": (8, 7, 7, 96)
    }  # fmt: skip


class Page(html.parser.HTMLParser):
    """The links, loaded files and ids of a page of the site."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values.get("id")}
        where = self.links if tag == "a" else self.loads
        where |= {values[name] for name in ("href", "src") if values.get(name)}


@needs_tools
def test_the_site_builds_is_complete_and_loads_nothing_from_elsewhere(tmp_path):
    site = tmp_path / "site"
    BUILD["build"](site)
    pages = {path: Page(path) for path in site.rglob("*.html")}
    built = {str(path.relative_to(site)) for path in pages}
    expected = {str(page.relative_to(ROOT).with_suffix(".html")).replace("README", "index") for page in PAGES}
    assert built == expected | {"404.html"}
    nowhere = []
    for path, page in pages.items():
        assert not [link for link in page.loads if ":" in link and not link.startswith("data:")], path
        for link in page.links | page.loads:
            parts = urllib.parse.urlsplit(link)
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if path.name == "404.html" or parts.scheme:  # the first is served at any address
                continue
            if not target.is_file() or (parts.fragment and parts.fragment not in pages[target].ids):
                nowhere.append(f"{path.relative_to(site)}: {link}")
    assert not nowhere
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"@import|url\([\"']?(https?:)?//", styles)
    api = "".join((site / "docs" / "api" / page).read_text() for page in ("models.html", "training.html"))
    assert "Call arguments:" in api and "Example:" in api and "https://arxiv.org/abs/2010.11929" in api
    assert re.search(r"Input shape:</strong>\s*<code>\(batch, patches, values\)</code>", api)
    assert re.search(r"<code>limit</code>\s*\(<code>int \| None</code>\): .+; <code>None</code> by default", api)


@slow
@needs_tools
def test_what_is_wrong_fails_and_leaves_the_old_site(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    for name in ("zensical.toml", "docstrings.py"):
        shutil.copy(DOCS / name, tmp_path / "docs")
    (tmp_path / "wrong.py").write_text('def documented(a):\n    """B.\n\n    Args:\n        none: C.\n    """\n')
    (tmp_path / "site").mkdir()
    monkeypatch.setitem(BUILD["build"].__globals__, "ROOT", tmp_path)
    for text in ("[b](docs/none.md)", "[b](#none)", "::: wrong.none", "::: wrong.documented"):
        (tmp_path / "README.md").write_text(f"# A\n\n{text}\n")
        with pytest.raises(RuntimeError, match=r"none"):
            BUILD["build"](tmp_path / "site")
        assert not list((tmp_path / "site").iterdir())


def test_the_table_of_coverage_is_the_measured_one():
    rows = json.loads((ROOT / "benchmarks" / "results" / "coverage.json").read_text())["rows"]
    table = runpy.run_path(str(ROOT / "benchmarks" / "coverage.py"))["table"](rows)
    assert table in (DOCS / "checkpoints.md").read_text()
    assert not [row for row in rows if {"wrong", "failed"} & {row["with_config"], row.get("bare")}]


def test_pictures_show_the_weights_that_ship():
    """`python docs/pictures.py` draws those of `docs/looking.md`; the others by the commands on their pages."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    notes = json.loads((ROOT / "docs" / "images" / "weights.json").read_text("utf-8"))
    there = {path.name for path in (ROOT / "docs" / "images").iterdir() if path.suffix in (".png", ".gif")}
    assert notes.keys() == there
    stale = [name for name, note in notes.items() if note and note != pictures.noted(note.split()[0])]
    assert not stale, "draw them again, then run docs/pictures.py"
