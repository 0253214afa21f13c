"""Ends a command on Ctrl-C, SIGTERM or SIGHUP."""

import _thread
import contextlib
import os
import signal
import sys
import threading

from keras_vit.utils.signals import handled

RETRY_SECONDS = 0.05


class Interrupted(KeyboardInterrupt):
    """A command was ended on request. `signal` is the number of the signal."""

    signal = signal.SIGINT


@contextlib.contextmanager
def ending():
    """A block, such as imports, in which Ctrl-C, SIGTERM or SIGHUP ends the process at once and prints one line."""

    def end(number, frame):
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.write(2, b"\nInterrupted.\n")
        os._exit(128 + number)

    with handled(end):
        yield


@contextlib.contextmanager
def interruptible():
    """A block that Ctrl-C, SIGTERM or SIGHUP ends by raising `Interrupted`; the second one ends the process at once.

    Python drops what is raised in a destructor, in a callback of the garbage collector (JAX and XLA add one) or in a
    callback of a C library, and the command would continue. Such an interrupt is raised again outside of them.

    Raises:
        Interrupted: Also at the end of the block, if a library caught the one before it or made an error of it.
    """
    received = []

    def end(number, frame):
        if not received:
            received.append(number)
        signal.signal(number, signal.SIG_DFL)  # the system handles the second one, whatever Python is doing
        raise _interrupted(received[0])

    def raise_again(dropped):
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            unraisable(dropped)
            return
        others = [number for number in heard if number not in received]
        number = (others or received)[0]  # the system has the one that was asked, unless a shell ignores the other
        if not others:
            signal.signal(number, end)
        again = threading.Timer(RETRY_SECONDS, _thread.interrupt_main, [number])
        again.daemon = True
        again.start()

    unraisable, sys.unraisablehook = sys.unraisablehook, raise_again
    try:
        with handled(end) as heard:
            yield
    except Exception:  # TensorFlow has places that make another error of any
        if not received:
            raise
    finally:
        sys.unraisablehook = unraisable
    if received:
        raise _interrupted(received[0])


def _interrupted(number):
    error = Interrupted()
    error.signal = number
    return error
