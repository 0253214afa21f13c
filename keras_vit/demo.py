"""A page on your own machine: give or draw an image, and see what a trained model answers and what it looks at."""

import contextlib
import errno
import html
import importlib.util
import math
import os
import pathlib
import socket
import tempfile
import warnings

import keras
import numpy as np

from keras_vit import rundir
from keras_vit.plots import canvas
from keras_vit.plots.attention import METHODS
from keras_vit.results import load_run
from keras_vit.runs import need_tensorflow

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")  # that TensorFlow reads
MOST_PIXELS = 64_000_000
MOST_BYTES = 32 * 2**20
SKETCHED = 64  # pixels a side up to which a grey image can be drawn by hand
PAD, BRUSH = 280, 11  # sides of the pad, and the brush's radius, in pixels
VIEW = 336  # pixels of a picture's longer side
EMPTY = {"background": np.zeros((PAD, PAD, 3), "uint8"), "layers": [], "composite": None}
# Where data sets have a thing in its image: side of the image, longer side of the thing, what of it lies in the middle,
# and where that is. LeCun et al. 1998, section III.A, Xiao et al. 2017 (arXiv:1708.07747), section 2, and measured.
PLACES = {"tfds:mnist": (28, 20, "mass", 14.5), "tfds:fashion_mnist": (28, 28, "box", 14), "digits": (8, 8, "box", 4)}


def launch(target, host="127.0.0.1", port=7860):
    """Opens the page of a trained model, until Ctrl-C.

    Args:
        target: Directory of a run, or the name of a recipe with trained weights.
        host: Address to listen on. Only this machine reaches the default one; with another, whoever reaches this
            machine reaches the page too.
        port: Port to listen on; 0 takes a free one.

    Raises:
        ValueError: As `load_run`; for a host or port that is none, or a model of other images than grey and colour.
        OSError: If the port is taken, or the address is not one of this machine's.
        ImportError: If Gradio is not installed.
    """
    _need_gradio()
    with listening(host, port) as listener, private_folder():
        served = server(page(target))
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
            yield
        finally:
            os.environ.pop(name)
            os.environ |= {} if before is None else {name: before}


def server(blocks):
    """Returns a `uvicorn.Server` of a page, and of nothing else."""
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
        max_file_size=MOST_BYTES,
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        theme=gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
    )
    # Quiet, since it calls the streams of pages that are open at the end errors; Gradio prints those of the page.
    return uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="critical", timeout_graceful_shutdown=1))


def page(target):
    """Returns the page of a trained model, a `gradio.Blocks`; `target` as in `launch`."""
    _need_gradio()
    need_tensorflow("Reading image files")
    import gradio as gr

    model, recipe, class_names = load_run(target)
    size, source = model.input_shape[1:], recipe.data.source
    if size[2] not in (1, 3):
        raise ValueError(f"The page shows images of 1 or 3 channels. Received: {str(target)!r}, of {size[2]}")

    def answer(pixels, method):
        if pixels is None:
            return None, None, None, ""
        logits = model(pixels[None], training=False)
        probabilities = keras.ops.convert_to_numpy(keras.ops.softmax(logits))[0].tolist()
        look, heading = METHODS[method]
        laid = canvas.painted(pixels, look(model, pixels[None])[0], VIEW)
        return dict(zip(class_names, probabilities)), canvas.painted(pixels, side=VIEW), laid, heading

    def from_file(file, method):
        pixels, refusal = None, ""
        try:
            pixels = read_image(file["path"], size, recipe.data)
        except ValueError as error:
            refusal = f'<p role="alert">{html.escape(str(error))}</p>'
        return None, pixels, gr.update(value=refusal, visible=bool(refusal)), *answer(pixels, method)

    def from_pad(drawing, method):
        if drawing["composite"] is None:  # the pad has got ready, and nothing was drawn
            return [gr.skip()] * 6
        pixels = from_drawing(drawing["composite"], size, source)
        return pixels, gr.update(visible=False), *answer(pixels, method)

    def emptied():
        return EMPTY, None, gr.update(visible=False), *answer(None, None)

    grey, reached = size[2] == 1, None if rundir.is_run(target) else recipe.reached  # a run's own is not known
    facts = f"{size[0]} x {size[1]} pixels, {'grey' if grey else 'colour'}, {len(class_names)} classes"
    facts += f", test accuracy {reached.test_accuracy:.2%}" if reached else ""
    drawn = grey and max(size) <= SKETCHED
    shown = {"format": "png", "buttons": [], "interactive": False, "show_label": False}
    with gr.Blocks(title=f"keras_vit: {recipe.name}", analytics_enabled=False) as blocks:
        gr.Markdown(f"# {recipe.name}\n{facts}")
        given = gr.State()
        with gr.Row():
            with gr.Column():
                if drawn:
                    pad = gr.Sketchpad(
                        EMPTY,
                        label="A drawing",
                        height=PAD + 80,
                        canvas_size=(PAD, PAD),
                        fixed_canvas=True,
                        layers=False,
                        transforms=(),
                        buttons=[],
                        format="png",
                        brush=gr.Brush(default_size=BRUSH, colors=["#FFFFFF"], color_mode="fixed"),
                    )
                    gr.Markdown(_about_pad(size, source))
                file = gr.File(label="An image file", file_types=["image"], height=160)
                refusal = gr.HTML(visible=False, padding=False)
            with gr.Column():
                label = gr.Label(label="Answer", num_top_classes=10 if len(class_names) <= 10 else 5)
                method = gr.Radio([(name.capitalize(), name) for name in METHODS], value="rollout", label="Attention")
                with gr.Row():
                    with gr.Column(min_width=120):
                        seen = gr.Image(**shown)
                        gr.Markdown("What the model is given")
                    with gr.Column(min_width=120):
                        laid = gr.Image(**shown)
                        heading = gr.Markdown()
        answers = [label, seen, laid, heading]
        once = {"concurrency_limit": 1, "concurrency_id": "model", "api_visibility": "private"}
        file.upload(from_file, [file, method], [file, given, refusal, *answers], preprocess=False, **once)
        method.change(answer, [given, method], answers, **once)
        if drawn:
            pad.input(from_pad, [pad, method], [given, refusal, *answers], trigger_mode="always_last", **once)
            pad.clear(emptied, None, [pad, given, refusal, *answers], **once)
    return blocks.queue(api_open=False)  # nothing passes by the queue


def read_image(path, size, data):
    """Returns an image file as the recipe's evaluation sees it.

    Args:
        path: The file. Of one that has too many pixels no more than the head is read.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.

    Returns:
        float32 array of `size`, 0..255.

    Raises:
        ValueError: For a file that is no image, is damaged or too large.
    """
    from PIL import Image

    from keras_vit.data import pipeline

    name = pathlib.Path(path).name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                pixels = image.width * image.height
    except Image.DecompressionBombError:
        pixels = math.inf
    except (OSError, SyntaxError, ValueError):
        raise ValueError(f"{name!r} is no image of a kind that is read: {', '.join(FORMATS)}.") from None
    if pixels > MOST_PIXELS:
        raise ValueError(f"{name!r} is too large: it has more than {MOST_PIXELS // 10**6} million pixels.")
    try:
        return pipeline.read_files([path], size, data)[0]
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), name)) from None


def from_drawing(drawing, size, source):
    """Returns a drawing as a data set has its images: of their size, and in their place if that is known.

    Args:
        drawing: uint8 array, `(rows, columns, 4)`, RGBA, white on black.
        size: `(height, width, 1)`.
        source: `source` of a recipe's data, such as `"tfds:mnist"`.

    Returns:
        float32 array of `size`, 0..255, white on black; or `None` if nothing is drawn.
    """
    from PIL import Image

    ink = (drawing[..., :3].max(axis=-1) * (drawing[..., 3] / 255)).astype("uint8")
    rows, columns = (np.flatnonzero(ink.max(axis=axis) > 127) for axis in (1, 0))
    if not len(rows):
        return None
    side, longer, by, middle = PLACES.get(source, (None,) * 4)
    if size[:2] != (side, side):
        return np.asarray(Image.fromarray(ink).resize(size[1::-1], Image.Resampling.BILINEAR), "float32")[..., None]
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = (max(round(longer * n / max(ink.shape)), 1) for n in ink.shape)
    ink = np.asarray(Image.fromarray(ink).resize((width, height), Image.Resampling.BILINEAR), "float32")
    weight = ink if by == "mass" else np.ones_like(ink)
    centre = [np.average(np.arange(n) + 0.5, weights=weight.sum(axis)) for axis, n in ((1, height), (0, width))]
    top, left = (round(np.clip(middle - at, 0, side - n)) for at, n in zip(centre, (height, width)))
    pixels = np.zeros(size, "float32")
    pixels[top : top + height, left : left + width, 0] = ink
    return pixels


def _need_gradio():
    if importlib.util.find_spec("gradio") is None:
        raise ImportError("The page needs gradio: pip install 'keras-vit[demo]'.")


def _about_pad(size, source):
    if PLACES.get(source, (None,))[0] != size[0]:
        return (
            f"The whole pad is scaled to {size[0]} x {size[1]} pixels, white on black. If the model learnt from images "
            "that look otherwise, its answer says little."
        )
    side, longer, by, _ = PLACES[source]
    return (
        f"White on black, as the images that it learnt from. The drawing is cut out, scaled to {longer} of {side} "
        f"pixels and put in the middle by its {by}, as they were; a mouse still draws unlike a pen."
    )
