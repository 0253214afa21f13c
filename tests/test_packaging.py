"""What is installed, and that recipes are found wherever the package runs from."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

import keras_vit
from tests.marks import slow

ROOT = pathlib.Path(__file__).parents[1]
KINDS = (".py", ".csv", ".html", ".css", ".typed")
LIST = "import keras_vit; print(*keras_vit.list_recipes()); print(keras_vit.__file__)"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("setuptools") is None or not (ROOT / "setup.py").exists(),
    reason="needs setuptools and a checkout",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the checkout, so that building leaves nothing in the real one."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("keras_vit", "recipes", "saved_models"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def python(executable, code, cwd):
    """Runs code in a process of its own; returns the lines that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["KERAS_BACKEND"] = "numpy"  # which Keras imports in the least time
    done = subprocess.run([executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def build(kind, checkout, folder):
    """Builds what pip installs, the wheel or the editable one, and unpacks it; returns the names of its files."""
    python(sys.executable, f"from setuptools import build_meta; build_meta.build_{kind}({str(folder)!r})", checkout)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
        return file.namelist()


def recipes():
    return sorted(path.stem for path in (ROOT / "recipes").glob("*.py"))


@slow
def test_wheel(checkout, tmp_path):
    names = build("wheel", checkout, tmp_path)
    top = {name.split("/")[0] for name in names}
    assert top == {"keras_vit", f"keras_vision_transformers-{keras_vit.__version__}.dist-info"}
    ours = {str(p.relative_to(ROOT)) for p in (ROOT / "keras_vit").rglob("*") if p.suffix in KINDS}
    ours |= {f"keras_vit/recipes/{name}.py" for name in recipes()}
    shipped = [p for p in (ROOT / "saved_models").iterdir() if p.suffix in (".keras", ".txt", ".md")]
    ours |= {f"keras_vit/saved_models/{p.name}" for p in shipped}
    assert {name for name in names if name.startswith("keras_vit/")} == ours
    assert "keras_vit/py.typed" in names  # type checkers read the hints of a package that has it
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {LIST}"
    listed, path = python(sys.executable, script, cwd=tmp_path)[-2:]
    assert listed.split() == recipes() and path.startswith(str(tmp_path))


def test_bare_checkout(checkout):
    listed, path = python(sys.executable, LIST, cwd=checkout)[-2:]
    assert listed.split() == recipes() and path.startswith(str(checkout))


@slow
def test_editable_install(checkout, tmp_path):
    """From anywhere, and in the folder that contains a clone of the same name as the package."""
    venv.create(tmp_path / "venv")
    executable = tmp_path / "venv" / "bin" / "python"
    site = next((tmp_path / "venv" / "lib").glob("*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))  # the dependencies, of this environment
    clone = shutil.copytree(checkout, tmp_path / "clones" / "keras_vit")
    pip = [sys.executable, "-m", "pip", "--python", str(executable), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(clone)], check=True)
    for folder in (tmp_path, clone.parent, clone):
        listed, path = python(executable, LIST, cwd=folder)[-2:]
        assert listed.split() == recipes() and path.startswith(str(clone))
    command = [tmp_path / "venv" / "bin" / "keras_vit", "--version"]
    assert subprocess.check_output(command, text=True) == f"keras_vit {keras_vit.__version__}\n"
