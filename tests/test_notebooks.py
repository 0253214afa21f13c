"""The notebooks run from top to bottom at small size, and are committed with clean outputs of a full run."""

import ast
import json
import os
import pathlib
import re
import runpy

import pytest

from tests.marks import slow

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
SMALL = {
    "1_train_mnist": {"splits": ["train[:128]", "test[64:128]", "test[:64]"], "depth": 1, "fit_epochs": 1,
                      "recipe_epochs": 1},
    "2_finetune_folder": {"per_class": 24, "epochs": 1},
    "3_look_inside": {"count": 64},
    "4_export": {"quantized": ("int8",), "test_images": 16, "calibration_images": 4},
    "5_build_your_own": {"epochs": 1, "limit": 64},
    "6_frozen_features": {"count": 120},
}  # fmt: skip
PREPARED = ("1_train_mnist", "3_look_inside", "4_export")  # read data of tensorflow-datasets
# Clears the previous notebook's names. Compiling takes longer than running here.
FIRST = "%reset -f\nimport tensorflow as tf; tf.config.run_functions_eagerly(True)"
UNWANTED = re.compile(r"warning|traceback|/home/|/root/|/tmp/|site-packages|\b[IWE]\d{4} \d\d:", re.IGNORECASE)


def cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]


def tagged(cell):
    return "parameters" in cell["metadata"].get("tags", ())


def kinds(cell):
    """Returns the kinds of a cell's outputs, such as {"stdout", "image/png"}, without logs."""
    outputs = [{output["name"]} if "name" in output else set(output["data"]) for output in cell.get("outputs", ())]
    return set().union(*outputs) - {"stderr"}


@pytest.fixture(scope="module")
def kernel():
    """One process for all notebooks: it imports TensorFlow once."""
    for module in ("tensorflow", "nbclient", "ipykernel"):
        pytest.importorskip(module)
    from jupyter_client import KernelManager

    kernel = KernelManager(kernel_name="python3")
    # A notebook has its own matplotlib backend, not the tests'.
    kernel.start_kernel(env={name: value for name, value in os.environ.items() if name != "MPLBACKEND"})
    yield kernel
    kernel.shutdown_kernel(now=True)


def test_all_are_here():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(SMALL)


@slow
@pytest.mark.parametrize("name", SMALL)
def test_runs_from_top_to_bottom(name, tmp_path, kernel):
    if name in PREPARED and "TFDS_DATA_DIR" not in os.environ:
        pytest.skip("TFDS_DATA_DIR is not set")
    run = runpy.run_path(str(FOLDER / "run.py"))["run"]
    done = run(FOLDER / f"{name}.ipynb", tmp_path, first=FIRST, kernel=kernel, **SMALL[name])
    for new, committed in zip(done.cells, cells(name), strict=True):
        assert kinds(new) == kinds(committed), new.source


@pytest.mark.parametrize("name", SMALL)
def test_a_cell_that_writes_can_run_again(name):
    lines = [line.rstrip() for cell in cells(name) if cell["cell_type"] == "code" for line in cell["source"]]
    for node in ast.walk(ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))):
        called = getattr(getattr(node, "func", None), "attr", "")
        if called.startswith("export_") or called == "save_checkpoint":
            assert "overwrite" in {keyword.arg for keyword in node.keywords}, ast.unparse(node)


@pytest.mark.parametrize("name", SMALL)
def test_what_is_committed_is_a_full_run(name):
    code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] != "error" and output.get("name") != "stderr"
            data = output.get("data", {})
            text = [*output.get("text", ()), *(line for kind in data if "image" not in kind for line in data[kind])]
            assert not UNWANTED.search("".join(text)) and str(FOLDER.parent) not in "".join(text), "".join(text)
    assert sum("image/png" in kinds(cell) for cell in code) >= 1
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 2**20


@pytest.mark.parametrize("name", SMALL)
def test_what_is_committed_has_no_metadata_of_a_machine(name):
    metadata = json.loads((FOLDER / f"{name}.ipynb").read_text())["metadata"]
    assert set(metadata) == {"kernelspec"} and metadata["kernelspec"]["name"] == "python3"
    assert all(set(cell["metadata"]) <= {"tags"} for cell in cells(name))


@pytest.mark.parametrize("name", SMALL)
def test_sizes_are_in_one_cell(name):
    [cell] = [cell for cell in cells(name) if tagged(cell)]
    assigned = {node.targets[0].id for node in ast.parse("".join(cell["source"])).body}
    assert set(SMALL[name]) <= assigned
