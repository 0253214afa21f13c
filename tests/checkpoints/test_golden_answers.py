"""`benchmarks/golden_answers.py` beside the originals' answers in the golden folders of images and texts."""

import shutil

import numpy as np
import pytest

from tests.captions import CASES, FOLDER
from tests.checkpoints.helpers import benchmark
from tests.checkpoints.towers import GENERATION, TOWERS, VILT
from tests.marks import slow

pytestmark = pytest.mark.backend

golden = benchmark("golden_answers")
OTHERS = [path.parent for kind in ("depth", "video") for path in (TOWERS.parent / kind).glob("*/io.npz")]
FOLDERS = [
    TOWERS.parent / "objects" / "autoencoder_kl",
    *sorted(path.parent for path in TOWERS.glob("*/io.npz")),
    VILT,
    *sorted(GENERATION.iterdir()),
    *sorted(OTHERS),
]
FOLDERS += [pytest.param(FOLDER / case, marks=slow) for case in CASES]  # `test_captions` reads them too
INPUTS = {name for family in golden.FAMILIES.values() for name in family.inputs} | {"pixel_mask"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_answers_are_the_original_s(folder, tmp_path):
    """The program sees a folder of another name, and no answers."""
    io = dict(np.load(folder / "io.npz"))
    for file in folder.iterdir():
        shutil.copy(file, tmp_path)
    np.savez(tmp_path / "io.npz", **{name: io[name] for name in INPUTS & set(io)})
    found, wanted = golden.answers(tmp_path), set(io) - INPUTS
    assert wanted and wanted <= set(found)
    for name in sorted(wanted):
        tolerance = 1e-3 if folder.parent == GENERATION else 1e-4  # angles of up to 999, in float32
        np.testing.assert_allclose(found[name], io[name], atol=tolerance, err_msg=name)


def test_another_family_is_refused(tmp_path):
    shutil.copy(VILT / "checkpoint.safetensors", tmp_path)
    with pytest.raises(ValueError, match="must be of towers of transformers, .*Received: model_type None, tens"):
        golden.answers(tmp_path)
