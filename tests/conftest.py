"""What every test shares: one seed, and the switch that hides TensorFlow from a run on JAX."""

import collections
import gc
import os
import pathlib
import shutil
import sys

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_VIT_CACHE"] = "off"  # tests of the cache name a folder
os.environ["CI"] = "true"  # by which OpenVINO sends no telemetry, from a fork of this process for each event
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):  # threads of one disturb the other
    worker, workers = os.environ["PYTEST_XDIST_WORKER"][2:], int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[int(worker) % len(cores) :: workers])
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

import filelock  # noqa: E402
import keras  # noqa: E402
import pytest  # noqa: E402

# Files that take longest, by the end of their paths.
LONGEST = (
    "models/test_merging.py", "detect/test_detect.py", "tests/test_jax.py", "training/test_fit.py",
    "runs/test_results.py", "tasks/test_harness.py", "training/test_loop.py", "training/test_devices.py",
    "export/test_gpu.py", "tests/test_notebooks.py", "tests/test_kills.py", "training/test_optimizers.py",
    "export/test_predictor.py", "training/test_stopping.py", "commands/test_features.py", "tests/test_readme.py",
    "runs/test_predictions.py", "training/test_finetuning.py", "export/test_saved_model.py",
    "training/test_own_callbacks.py", "training/test_keep.py", "training/test_sweeping.py",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Leaves out what is slow, and starts the longest files first, lest one worker wait for them at the end."""
    from tests.marks import QUICKLY, WHICH, is_slow, sliced, slow

    seen = collections.Counter()
    for item in items:
        if "data" in item.path.relative_to(pathlib.Path(__file__).parent).parts:  # tf.data compiles these functions
            item.add_marker("compiled")
        for mark in item.iter_markers("few"):
            seen[item.path, item.originalname] += 1
            if seen[item.path, item.originalname] > mark.args[0]:
                item.add_marker(slow)
    if "/" in WHICH:
        chosen = sliced(items, WHICH)
        config.hook.pytest_deselected(items=[*set(items) - set(chosen)])
        items[:] = chosen
    for item in items:
        if QUICKLY and is_slow(item):
            item.add_marker(pytest.mark.skip("slow: set KERAS_VIT_SLOW=1"))
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get("/".join(item.path.parts[-2:]), len(LONGEST)))


def pytest_runtest_setup(item):
    """Runs functions of TensorFlow as they are, since tracing and compiling take longer than most tests.

    Not those of tests that are marked as `compiled`; and with KERAS_VIT_SLOW, of none.
    """
    from tests.marks import QUICKLY

    if QUICKLY and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.run_functions_eagerly(item.get_closest_marker("compiled") is None)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A finished run of the smallest recipe, which all processes of a session share."""
    from keras_vit.training.fit import fit
    from tests.small import small

    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with filelock.FileLock(base / "small.lock"):
        if not (base / "small" / "model.keras").exists():
            keras.utils.set_random_seed(0)
            fit(small(), base / "small", verbose=0)
    return base / "small"


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """The directory of a finished run of the smallest recipe, for the tests of a file."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture
def eagerly():
    """Functions of TensorFlow run as they are: tracing and compiling take longer than such short trainings."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


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
def clock(monkeypatch):
    """A clock of lines of progress that a test moves: they are the same on a busy machine."""
    now = [100.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


@pytest.fixture(scope="module", autouse=True)
def _few_objects_to_collect():
    """Keeps the objects of imported libraries out of garbage collection, and collects less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def _seed(monkeypatch):
    """One seed for each test; of TensorFlow's own, which few operations use, only a slow run sets it.

    It makes TensorFlow forget the kernels of all operations, and making them anew takes longer than most tests.
    """
    from tests.marks import QUICKLY

    if QUICKLY and keras.backend.backend() == "tensorflow":
        monkeypatch.setattr("tensorflow.random.set_seed", lambda seed: None)
    keras.utils.set_random_seed(0)
