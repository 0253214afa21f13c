"""Serves the page: socket, temporary folder, clean shutdown."""

import contextlib
import errno
import os
import pathlib
import signal
import socket
import tempfile

import keras

from keras_vit.demo.guard import MOST_BYTES, Guard
from keras_vit.demo.page import CHOSEN, ON_A_FILE, need_gradio, page
from keras_vit.utils.environment import environment
from keras_vit.utils.signals import handled


def launch(target: str | os.PathLike | keras.Model, host: str = "127.0.0.1", port: int = 7860) -> None:
    """Serves the demo page of a trained model until Ctrl-C, SIGTERM or SIGHUP.

    Args:
        target: As in `keras_vit.load_run`.
        host: Address to listen on. Only this machine can open the default one; with another address, anyone who can
            reach this machine can open the page.
        port: Port to listen on; 0 picks a free one.

    Raises:
        ValueError: As `load_run`; for an invalid host or port, or a model whose images have neither 1 nor 3 channels.
        OSError: If the port is in use, or the address is not one of this machine's.
        ImportError: If Gradio is not installed.
    """
    need_gradio()
    alone = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # else the caller handles signals, as the command does
    ended = handled(signal.default_int_handler) if alone else contextlib.nullcontext()
    with ended, listening(host, port) as listener, private_folder() as folder:
        served = server(page(target), host, folder)
        name = f"[{host}]" if ":" in host else host
        print(f"http://{name}:{listener.getsockname()[1]} (stop with Ctrl-C)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            served.run(sockets=[listener])


def listening(host, port):
    """Returns a listening socket, a context manager that closes it; raises as `launch`."""
    if not host:
        raise ValueError(f"`host` must be an address or a host name. Received: host={host!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 2**16:
        raise ValueError(f"`port` must be an integer from 0 to 65535. Received: port={port!r}")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(f"Port {port} of {host} is already in use. Choose another port.") from None
        reason = str(error.strerror).partition(" (")[0]  # Python repeats the address
        raise OSError(f"Cannot listen on port {port} of {host!r}: {reason}.") from None


@contextlib.contextmanager
def private_folder():
    """Lets Gradio keep uploads in a temporary folder that only this user can read; deletes it at the end."""
    temporary = tempfile.TemporaryDirectory(prefix="keras_vit-", ignore_cleanup_errors=True)
    with temporary as folder, environment("GRADIO_TEMP_DIR", folder):
        yield pathlib.Path(folder)


def server(blocks, host, folder):
    """Returns a `uvicorn.Server` that serves a page and nothing else.

    Args:
        blocks: The page.
        host: As in `launch`.
        folder: What `private_folder` yields.
    """
    import fastapi
    import gradio
    import uvicorn

    blocks.has_launched = True  # otherwise Gradio does not check that a file in a request was uploaded to the page
    app = gradio.mount_gradio_app(
        fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None),
        blocks,
        path="/",
        footer_links=[],
        run_history=False,
        max_file_size=MOST_BYTES,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        theme=theme(),
        css=f"#{CHOSEN} {{ display: none }}",
        head=f"<script>{ON_A_FILE}</script>",
    )
    # Quiet: uvicorn logs the streams of open pages as errors at shutdown; Gradio prints the page's own errors.
    return uvicorn.Server(
        uvicorn.Config(Guard(app, host, folder), log_config=None, log_level="critical", timeout_graceful_shutdown=1)
    )


def theme():
    """Returns Gradio's theme, with fonts that each system has, and small text with more contrast than its own."""
    import gradio

    base = gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    light, dark = "*neutral_600", "*neutral_300"
    return base.set(
        block_info_text_color=light,
        block_info_text_color_dark=dark,
        body_text_color_subdued=light,
        body_text_color_subdued_dark=dark,
    )
