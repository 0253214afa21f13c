"""Who handles Ctrl-C and SIGTERM."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def handled(handler):
    """A block in which a function handles Ctrl-C and SIGTERM, unless ignored; yields the signals that it handles."""
    alone = threading.current_thread() is threading.main_thread()  # only there Python handles signals
    both = (signal.SIGINT, signal.SIGTERM) if alone else ()
    before = {n: signal.signal(n, handler) for n in both if signal.getsignal(n) != signal.SIG_IGN}  # as `nohup` wants
    try:
        yield list(before)
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
