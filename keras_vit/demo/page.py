"""The demo page: upload or draw an image, and see a trained model's prediction and attention."""

import contextlib
import html
import pathlib

import numpy as np

from keras_vit.demo.drawing import BRUSH, PAD, SKETCHED, about_pad, from_drawing
from keras_vit.demo.drawn import drawing_page
from keras_vit.explain import attention_rollout
from keras_vit.explain.reading import doubt
from keras_vit.explain.texts import reads_both
from keras_vit.models.backbone import image_tower
from keras_vit.models.inputs import fed
from keras_vit.models.preprocessing import preprocess
from keras_vit.plots import canvas
from keras_vit.plots.attention import METHODS
from keras_vit.runs import trained
from keras_vit.runs.looking import support_of
from keras_vit.runs.sampled import draws_images
from keras_vit.tasks.base import are_shares, words
from keras_vit.training.devices import need_tensorflow
from keras_vit.utils import clips, extras, images
from keras_vit.utils.metrics import written

MOST_PIXELS = 50_000_000  # of an upload: what a page decodes for others is bounded, by some 0.4 GB
VIEW = 336  # pixels of the longer side of an image
EMPTY = {"background": np.zeros((PAD, PAD, 3), "uint8"), "layers": [], "composite": None}


def page(target):
    """Returns the demo page of a trained model, a `gradio.Blocks`; `target` as in `launch`."""
    need_gradio()
    need_tensorflow("Reading image files")
    import gradio as gr

    found = trained.load_run(target)
    if draws_images(found):
        return drawing_page(found)
    model, class_names, recipe, task = found.model, found.class_names, found.bound, found.task
    asks = "texts" in task.inputs
    tower, support = image_tower(model), support_of(model)
    hidden = reads_both(model) or doubt(tower)
    looks = {"rollout": None if hidden else lambda given: attention_rollout(tower, given["images"])}
    looks = {name: look for name, look in (looks | {"relevance": support}).items() if look}
    methods = {name: (look, METHODS[name][1]) for name, look in looks.items()}
    run = found.viewer()
    size, source = found.size, recipe.data.source
    if size[-1] not in (1, 3):
        raise ValueError(f"The model must take images with 1 or 3 channels. Received: {str(target)!r}, with {size[-1]}")

    def predict(pixels, method, text=None):
        if pixels is None or (asks and not (text or "").strip()):
            return "Write a text." if asks else None, None, None, ""
        try:
            given = {"images": pixels[None], **found.ids_of(text if asks else None, 1)}
        except ValueError as error:  # of a text that is too long, or has other words
            return str(error), None, None, ""
        output, (look, heading) = run(fed(given, task.inputs))[0], methods.get(method, (None, ""))
        laid = canvas.painted(pixels, look(given)[0], VIEW) if look else None
        answer = task.marked(task.answer(output))
        label = answer if are_shares(answer.values()) else words(answer.items())
        return label, canvas.painted(task.picture(pixels, output), side=VIEW), laid, heading

    def shown_or_refused(read, path, *shown):
        pixels, refusal = None, ""
        try:
            pixels = read(path)
        except ValueError as error:
            refusal = f'<p role="alert">{html.escape(str(error))}</p>'
        return pixels, gr.update(value=refusal, visible=bool(refusal)), *predict(pixels, *shown)

    def from_file(file, *shown):
        read = lambda path: read_image(path, size, recipe.data, model if found.alone else None)  # noqa: E731
        read = read if task.clips is None else lambda path: read_clip(path, size, recipe.data, task.clips)
        return None, *shown_or_refused(read, file["path"], *shown)

    def from_pad(drawing, *shown):
        if drawing["composite"] is None:  # the pad has loaded and is still empty
            return [gr.skip()] * 6
        read = lambda path: from_drawing(read_drawing(path), size, source)  # noqa: E731
        return shown_or_refused(read, drawing["composite"]["path"], *shown)

    def clear():
        return EMPTY, None, gr.update(visible=False), *predict(None, None)

    gray, reached = size[-1] == 1, recipe.reached if found.shipped else None  # unknown for a run
    facts = "" if task.clips is None else f"{size[0]} frames of "
    facts += f"{size[-3]} x {size[-2]} pixels, {'gray' if gray else 'color'}"
    facts += f", {len(class_names)} classes" if class_names else ""
    facts += f", {reached.headline[0]} {written(*reached.headline)}" if reached else ""
    facts += ", in brackets: labels that reach their threshold" if task.gives == "labels" else ""
    drawn = gray and max(size) <= SKETCHED and task.clips is None
    taken = {"label": "Image file", "file_types": ["image"]}
    taken = taken if task.clips is None else {"label": "Clip", "file_types": [*clips.ENDINGS]}
    plain = {"format": "png", "buttons": [], "interactive": False, "show_label": False}
    with gr.Blocks(title=f"keras_vit: {recipe.name}", analytics_enabled=False, delete_cache=(60, 300)) as blocks:
        gr.Markdown(f"# {recipe.name}\n{facts}")
        current = gr.State()
        with gr.Row():
            with gr.Column():
                if drawn:
                    pad = gr.Sketchpad(
                        EMPTY,
                        label="Draw",
                        height=PAD + 80,
                        canvas_size=(PAD, PAD),
                        fixed_canvas=True,
                        layers=False,
                        transforms=(),
                        buttons=[],
                        format="png",
                        brush=gr.Brush(default_size=BRUSH, colors=["#FFFFFF"], color_mode="fixed"),
                    )
                    gr.Markdown(about_pad(size, source))
                file = gr.File(**taken, height=160)
                asked = [gr.Textbox(label="Text")] if asks else []
                refusal = gr.HTML(visible=False, padding=False)
            with gr.Column():
                label = gr.Label(label="Prediction", num_top_classes=10 if len(class_names) <= 10 else 5)
                choices = [(name.capitalize(), name) for name in methods]
                method = gr.Radio(choices, value=next(iter(methods), None), label="Attention", visible=bool(methods))
                with gr.Row():
                    with gr.Column(min_width=120):
                        seen = gr.Image(**plain)
                        gr.Markdown("Prediction" if task.draws else "Model input")
                    with gr.Column(min_width=120):
                        laid = gr.Image(**plain)
                        heading = gr.Markdown()
        outputs = [label, seen, laid, heading]
        once = {"concurrency_limit": 1, "concurrency_id": "model", "api_visibility": "private"}
        file.upload(from_file, [file, method, *asked], [file, current, refusal, *outputs], preprocess=False, **once)
        for changed in (method.change, *(text.submit for text in asked)):
            changed(predict, [current, method, *asked], outputs, **once)
        if drawn:
            pad.input(
                from_pad,
                [pad, method, *asked],
                [current, refusal, *outputs],
                preprocess=False,
                trigger_mode="always_last",
                **once,
            )
            pad.clear(clear, None, [pad, current, refusal, *outputs], **once)
    return blocks.queue(api_open=False)  # no request bypasses the queue


def read_image(path, size, data, model=None):
    """Reads an image file, prepared as for the recipe's evaluation.

    Args:
        path: The file.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`.
        model: Model whose own evaluation rule replaces `data`, or `None`.

    Returns:
        float32 array of `size`, 0..255.

    Raises:
        ValueError: If the file is not an image, or is damaged or too large.
    """
    from keras_vit.data import pipeline

    with _named(path, repr(pathlib.Path(path).name)):
        images.encoded(path, MOST_PIXELS)
        return pipeline.read_files([path], size, data)[0] if model is None else preprocess(model, path)[0]


def read_clip(path, size, data, sampling):
    """Reads a clip as `read_image` does an image.

    Args:
        path: The file.
        size: `(frames, height, width, channels)`.
        data: A `keras_vit.config.Data`.
        sampling: A `keras_vit.data.clips.Sampling`.
    """
    from keras_vit.data.readers import clips as readers

    with _named(path, repr(pathlib.Path(path).name)):
        return readers.reader(size, data, sampling, most_pixels=MOST_PIXELS, by_bytes=False)(path)


def read_drawing(path):
    """Returns what the pad saved as uint8 RGBA, `(rows, columns, 4)`; raises ValueError if it is no drawing."""
    with _named(path, "The drawing"):
        data = images.encoded(path, MOST_PIXELS)
        try:
            with images.opened(data) as image:
                return np.asarray(image.convert("RGBA"))
        except Exception as error:  # any error of the decoder is a fault of this file
            raise ValueError(f"{str(path)!r} cannot be read as an image: {error}.") from None


@contextlib.contextmanager
def _named(path, name):
    """Lets errors name an image as its user knows it, not by the path of a temporary file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace(repr(str(path)), name)) from None


def need_gradio():
    extras.need("The demo page", "demo", "gradio")
