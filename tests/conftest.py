"""What every test shares: one seed, and the switch that hides TensorFlow from a run on JAX."""

import os
import pathlib
import sys

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Compiling takes longer than running here.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

# Debian's chromium has SwiftShader. On it an export takes seconds more: only tests that ask for it find a driver.
os.environ.setdefault(
    "KERAS_VIT_VULKAN", os.environ.get("VK_DRIVER_FILES", "/usr/lib/chromium/vk_swiftshader_icd.json")
)
os.environ["VK_DRIVER_FILES"] = "none"


class _NoTensorFlow:
    """Makes `import tensorflow` fail, as on a machine without it."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_datasets"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if os.environ.get("KERAS_VIT_HIDE_TENSORFLOW"):
    sys.meta_path.insert(0, _NoTensorFlow())

import keras  # noqa: E402
import pytest  # noqa: E402


def pytest_collection_modifyitems(items):
    """Starts the longest first, lest one worker wait for it at the end."""
    items.sort(key=lambda item: item.path.name not in ("test_jax.py", "test_distribution.py"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The directory of a finished run of the smallest recipe."""
    from keras_vit import runs
    from tests.small import small

    workdir = tmp_path_factory.mktemp("runs") / "small"
    runs.fit(small(), workdir, verbose=0)
    return workdir


@pytest.fixture
def pictures(tmp_path):
    """Five images, one of them in a subfolder, and three files that are not pictures."""
    import numpy as np

    (tmp_path / "pictures" / "deep").mkdir(parents=True)
    files = [tmp_path / "pictures" / name for name in ("a.png", "b.png", "c.png", "d.png", "deep/a.png")]
    for seed, file in enumerate(files):
        keras.utils.save_img(file, np.random.default_rng(seed).integers(0, 256, (30, 22 + seed, 3)), scale=False)
    for name in ("notes.txt", "._a.png", ".hidden.png"):
        (tmp_path / "pictures" / name).write_text("no image")
    return files


@pytest.fixture
def vulkan(monkeypatch):
    """A Vulkan driver, by which exports are tried on LiteRT's GPU accelerator."""
    driver = os.environ["KERAS_VIT_VULKAN"]
    if not pathlib.Path(driver).is_file():
        pytest.skip(f"there is no Vulkan driver {driver}: apt-get install chromium, or set VK_DRIVER_FILES")
    monkeypatch.setenv("VK_DRIVER_FILES", driver)
    return driver


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)
