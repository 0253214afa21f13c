"""Serving the page: a socket, a folder of its own, and an orderly end."""

import contextlib
import errno
import os
import pathlib
import signal
import socket
import tempfile
import threading

from keras_vit.demo import guard
from keras_vit.demo.page import need_gradio, page


def launch(target, host="127.0.0.1", port=7860):
    """Opens the page of a trained model, until Ctrl-C or a SIGTERM.

    Args:
        target: As in `keras_vit.load_run`.
        host: Address to listen on. Only this machine reaches the default one; with another, whoever reaches this
            machine reaches the page too.
        port: Port to listen on; 0 takes a free one.

    Raises:
        ValueError: As `load_run`; for a host or port that is none, or a model of other images than grey and colour.
        OSError: If the port is taken, or the address is not one of this machine's.
        ImportError: If Gradio is not installed.
    """
    need_gradio()
    with ended_by_signals(), listening(host, port) as listener, private_folder() as folder:
        served = server(page(target), host, folder)
        name = f"[{host}]" if ":" in host else host
        print(f"http://{name}:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            served.run(sockets=[listener])


def listening(host, port):
    """Returns a socket that listens, which the end of a `with` closes; raises as `launch`."""
    if not host:
        raise ValueError(f"`host` is an address or a name. Received: host={host!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 2**16:
        raise ValueError(f"`port` is an integer from 0 to 65535. Received: port={port!r}")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(f"Port {port} of {host} is taken. Choose another port.") from None
        reason = str(error.strerror).partition(" (")[0]  # Python repeats the address
        raise OSError(f"It is not possible to listen on port {port} of {host!r}: {reason}.") from None


@contextlib.contextmanager
def private_folder():
    """A block in which Gradio keeps what it is given in a folder of this user alone, which is removed at the end."""
    name = "GRADIO_TEMP_DIR"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory(prefix="keras_vit-", ignore_cleanup_errors=True) as folder:
        os.environ[name] = folder
        try:
            yield pathlib.Path(folder)
        finally:
            os.environ.pop(name)
            os.environ |= {} if before is None else {name: before}


@contextlib.contextmanager
def ended_by_signals():
    """A block that SIGTERM, and SIGHUP of a terminal that is closed, end as Ctrl-C does: nothing is left behind."""
    before = {}
    if threading.current_thread() is threading.main_thread():  # Python handles signals there alone
        known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in known}
    for number in (number for number in before if before[number] == signal.SIG_DFL):  # nohup ignores SIGHUP
        # Uvicorn knows SIGTERM, and raises it again when it has come to its end.
        signal.signal(number, signal.default_int_handler if number == signal.SIGTERM else _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(*_):
    signal.raise_signal(signal.SIGTERM)


def server(blocks, host, folder):
    """Returns a `uvicorn.Server` of a page, and of nothing else.

    Args:
        blocks: The page.
        host: As in `launch`.
        folder: What `private_folder` yields.
    """
    import fastapi
    import gradio
    import uvicorn

    blocks.has_launched = True  # only then does Gradio check that a file that it is told of was given to the page
    app = gradio.mount_gradio_app(
        fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None),
        blocks,
        path="/",
        footer_links=[],
        run_history=False,
        max_file_size=guard.MOST_BYTES,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        theme=gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
    )
    # Quiet, since it calls the streams of pages that are open at the end errors; Gradio prints those of the page.
    guarded = guard.Guard(app, host, folder)
    return uvicorn.Server(uvicorn.Config(guarded, log_config=None, log_level="critical", timeout_graceful_shutdown=1))
