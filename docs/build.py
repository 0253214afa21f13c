"""Builds the documentation site in site/: python docs/build.py. Needs pip install -e '.[docs]'."""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ("zensical", "mkdocstrings_handlers")
# All targets of relative links, in the same layout as here: links work on a code host and in the site. They are copied
# to a separate folder, because the tool reads its whole folder and hung on one with a virtual environment.
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "benchmarks/**/README.md",
    "saved_models/README.md",
    "docs/**/*.md",
    "docs/**/*.gif",
    "docs/**/*.png",
    "docs/**/*.css",
    "recipes/*.py",
    "keras_vit/**/*.py",
    "notebooks/*.ipynb",
)


def build(target):
    """Builds the site and replaces the folder `target`. A warning is an error and leaves the folder unchanged.

    Raises:
        ImportError: If a tool is not installed.
        RuntimeError: If the tool warns, with its warnings.
    """
    if not all(map(importlib.util.find_spec, TOOLS)):
        raise ImportError("The site is built by Zensical and mkdocstrings-python: pip install -e '.[docs]'")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in ("zensical.toml", "docstrings.py"):
            shutil.copy(ROOT / "docs" / name, folder)
        for path in [path for pattern in PAGES for path in ROOT.glob(pattern)]:
            copy = folder / "pages" / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", folder / "zensical.toml"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode or "griffe:" in done.stderr:  # griffe's warnings alone do not fail the build
            raise RuntimeError(re.sub(r"\x1b\[[\d;]*m", "", done.stderr).partition("Traceback")[0])
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(folder / "site", target)


if __name__ == "__main__":
    try:
        build(ROOT / "site")
    except (ImportError, RuntimeError) as error:
        sys.exit(str(error))
    print("Open site/index.html. Search needs a server: python -m http.server --directory site")
