"""Who handles Ctrl-C, SIGTERM and the SIGHUP of a terminal that closes."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def handled(handler):
    """A block in which a function handles these signals, unless they are ignored; yields those that it handles."""
    alone = threading.current_thread() is threading.main_thread()  # only there Python handles signals
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if alone and hasattr(signal, name)]
    before = {
        n: signal.signal(n, handler) for n in signals if signal.getsignal(n) != signal.SIG_IGN
    }  # as `nohup` wants
    try:
        yield list(before)
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
