import warnings

import keras
import pytest

from keras_vit import vit
from keras_vit.config import Optim
from keras_vit.training import doubts
from keras_vit.utils import machine

INTEL = "processor : 0\nflags\t\t: fpu avx512f {}\nbugs : bf16\n"
ARM = "processor : 0\nFeatures\t: fp asimd {}\n"


def tiny(dtype):
    return vit("mu/4", image_size=8, num_classes=3, depth=1, dtype=dtype)


@pytest.fixture
def warned(tmp_path, monkeypatch, recwarn):
    """A function that returns what is said of a model on a processor, by its file of abilities."""

    def said(dtype, text, jit_compile=False):
        recwarn.clear()
        if text is not None:
            (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
        doubts.precision(tiny(dtype), jit_compile)
        return [str(one.message) for one in recwarn if one.category is UserWarning]

    return said


@pytest.mark.backend
@pytest.mark.parametrize(
    "text", [INTEL.format("avx512_bf16"), INTEL.format("amx_bf16"), ARM.format("bf16"), "nothing", None]
)
def test_a_processor_with_instructions_or_unknown_trains_in_bfloat16_without_a_word(warned, text):
    assert not warned("mixed_bfloat16", text)
    assert not warned("bfloat16", text)


@pytest.mark.parametrize("text", [INTEL.format("avx512_vnni"), ARM.format("sve")])
def test_without_instructions_it_is_said(warned, text):
    [said] = warned("mixed_bfloat16", text)
    assert "Training in bfloat16 takes" in said and "no instructions for bfloat16. Pass no model.dtype" in said
    assert not warned("float32", text)


def test_float16_and_xla_are_slow_on_any_cpu(warned):
    [said] = warned("mixed_float16", INTEL.format("avx512_bf16"))
    assert "no fast products of float16. Pass model.dtype=mixed_bfloat16 and optim.xla=False" in said
    [said] = warned("mixed_bfloat16", INTEL.format("avx512_bf16"), jit_compile=True)
    assert "XLA computes bfloat16 no faster" in said and "Pass model.dtype=mixed_bfloat16 and optim.xla=False" in said
    [said] = warned("mixed_float16", INTEL.format(""))
    assert said.endswith("Pass no model.dtype")


@pytest.mark.backend
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow has steps without XLA")
def test_jax_always_compiles(warned):
    [said] = warned("mixed_bfloat16", INTEL.format("avx512_bf16"), jit_compile=True)
    assert said.endswith("XLA computes bfloat16 no faster on a CPU. Pass no model.dtype")


def test_gpus_are_left_alone(warned, monkeypatch):
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["gpu:0"])
    assert not warned("mixed_float16", INTEL.format("")) and not warned("mixed_bfloat16", INTEL.format(""))


def test_a_run_that_is_too_short_for_its_average():
    """Public reports of diffusion models show pictures of noise: the average was that of the first steps."""
    with pytest.warns(
        UserWarning, match="At the end of 200 updates, .* still 82% the initial ones: .*Take 0.9851 or less"
    ):
        doubts.lag(Optim(ema=0.999, epochs=4, accumulate=2), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doubts.lag(Optim(ema=0.999, epochs=4), 1000)
        doubts.lag(Optim(epochs=1), 1)
