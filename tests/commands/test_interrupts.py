"""Ctrl-C and SIGTERM end a command, also where Python drops what is raised."""

import subprocess
import sys

import pytest

from keras_vit.commands import interrupts

# A command that goes on after each place in which Python drops exceptions.
COMMAND = """
import gc, runpy, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
sys.argv[0] = "keras_vit"  # as the command line, which imports no Keras yet
import keras_vit
interruptible = runpy.run_path(sys.argv[3])["interruptible"]

class Destructor:
    def __del__(self):
        signal.raise_signal(number)

def collected(phase, info):
    if phase == "start":
        gc.callbacks.remove(collected)
        signal.raise_signal(number)

def in_destructor():
    Destructor()

def in_collection():
    gc.callbacks.append(collected)
    gc.collect()

def in_another_error():
    try:
        signal.raise_signal(number)
    except:
        raise TypeError("Cannot find maximum value of int32.")

def in_library():
    import ctypes
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))()

number, place = int(sys.argv[1]), globals()[sys.argv[2]]
try:
    with interruptible():
        place()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            time.sleep(0.01)
        print('not ended')
except KeyboardInterrupt as stopped:
    sys.exit(128 + stopped.signal)
"""


@pytest.mark.parametrize("number", [2, 15])
@pytest.mark.parametrize("place", ["in_destructor", "in_collection", "in_library", "in_another_error"])
def test_an_interrupt_that_python_drops_is_raised_again(number, place):
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, str(number), place, interrupts.__file__], capture_output=True, text=True
    )
    assert ended.returncode == 128 + number and not ended.stdout, ended.stderr


@pytest.mark.parametrize("number", [2, 15])
def test_a_second_signal_ends_a_command_that_is_slow_to_end(number):
    command = COMMAND.replace("place()", "\n        try: place()\n        finally: in_destructor(); print('not ended')")
    arguments = [str(number), "in_collection", interrupts.__file__]
    ended = subprocess.run([sys.executable, "-c", command, *arguments], capture_output=True, text=True)
    assert ended.returncode == -number and not ended.stdout, ended.stderr


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_ends_imports_with_one_line(number):
    block = COMMAND.replace('"interruptible"', '"ending"').replace("place()", "signal.raise_signal(number)")
    arguments = [str(number), "in_library", interrupts.__file__]
    ended = subprocess.run([sys.executable, "-c", block, *arguments], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", "\nInterrupted.\n")
