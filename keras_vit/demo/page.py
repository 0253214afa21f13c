"""The demo page: upload or draw an image, and see a trained model's prediction and attention."""

import pathlib

import numpy as np

from keras_vit.demo import markup
from keras_vit.demo.drawing import BRUSH, PAD, SKETCHED, about_pad, from_drawing
from keras_vit.demo.drawn import drawing_page
from keras_vit.demo.reading import MOST_WHOLE, read_drawing, reader
from keras_vit.demo.seeing import draws_more, hint, looks_of, seeing
from keras_vit.models.metadata import metadata
from keras_vit.runs import references, trained
from keras_vit.runs.sampled import draws_images
from keras_vit.runs.translated import check_images
from keras_vit.training.devices import need_tensorflow
from keras_vit.utils import bands, extras
from keras_vit.utils.metrics import written

EMPTY = {"background": np.zeros((PAD, PAD, 3), "uint8"), "layers": [], "composite": None}
ONCE = {"concurrency_limit": 1, "concurrency_id": "model", "api_visibility": "private"}
BARS = 10  # of at most as many classes; of more, half as many bars
WIDTHS = {True: 480, False: 120}  # pixels of the column of a picture: what a task draws, or is wide, has its own row
WIDE = 2  # width of an image by its height, at least
CHOSEN = "chosen"  # the button that the page presses when a file is chosen
# The old answer goes at once: Gradio tells of files that were uploaded, not of those that are too large or not taken.
ON_A_FILE = f"""
const chosen = event => {{
  const files = event.target.files || event.dataTransfer?.files;
  if (files?.length) document.getElementById("{CHOSEN}")?.click();
}};
document.addEventListener("change", chosen, true);
document.addEventListener("drop", chosen, true);
"""


def page(target):
    """Returns the demo page of a trained model, a `gradio.Blocks`; `target` as in `launch`."""
    need_gradio()
    need_tensorflow("Reading image files")
    import gradio as gr

    loaded = trained.load_run(target)
    check_images(loaded, "The demo")
    loaded.check_one_job()
    references.check_none(loaded, "The page")
    if draws_images(loaded):
        return drawing_page(loaded)
    task, size, source = loaded.task, loaded.size, loaded.bound.data.source
    if size[-1] not in (1, 3) and bands.kept_in(metadata(loaded.model)) is None:
        raise ValueError(
            f"The model must take images with 1 or 3 channels. Received: {loaded.bound.name!r}, with {size[-1]}"
        )
    looks, read_image = looks_of(loaded), reader(loaded)
    see = seeing(loaded, looks, BARS if len(loaded.class_names) <= BARS else BARS // 2)

    def given(read_image, path, name, *questions):
        """Returns the pixels, what is told of the file, and what is shown."""
        try:
            pixels = read_image(path)
        except ValueError as error:
            return None, markup.refusal(error), *see(None)
        return pixels, markup.file_line(name), *see(pixels, *questions)

    def from_file(file, *questions):
        path = file["path"]
        return None, *given(read_image, path, pathlib.Path(path).name, *questions)

    def from_pad(drawing, file_note, *questions):
        if drawing["composite"] is None:  # the pad has loaded and is still empty
            return [gr.skip()] * 8

        def placed(path):
            return from_drawing(read_drawing(path), size, source)

        seen = given(placed, drawing["composite"]["path"], "", *questions)
        empty = seen[0] is None and not seen[1]
        return [gr.skip()] * 8 if empty and file_note else seen  # cleared for a file, of which the page tells

    def clear():
        return EMPTY, None, "", *see(None)

    draws = draws_more(task)
    own_row = draws or size[-2] >= WIDE * size[-3]
    drawn = size[-1] == 1 and max(size) <= SKETCHED and task.clips is None and not task.whole
    plain = {"format": "png", "buttons": ["fullscreen"], "interactive": False, "show_label": False}
    name = loaded.bound.name
    with gr.Blocks(title=f"keras_vit: {name}", analytics_enabled=False, delete_cache=(60, 300)) as blocks:
        gr.Markdown(f"# {name}\n{facts(loaded)}")
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
                file = gr.File(
                    label="Image file" if task.clips is None else "Clip", height=160
                )  # any: the page refuses
                file_note = gr.HTML(padding=False)
                questions, button = _questions(task) if "texts" in task.inputs else ([], None)
            with gr.Column(scale=2 if draws else 1):
                answer = gr.HTML(padding=False)
                choices = [(look.capitalize(), look) for look in looks]
                method = gr.Radio(choices, value=next(iter(looks), None), label="Attention", visible=bool(looks))
                with gr.Row():
                    with gr.Column(min_width=WIDTHS[own_row]):
                        seen = gr.Image(**plain)
                        if task.legend():
                            gr.HTML(markup.legend(task.legend()), padding=False)
                        under = gr.Markdown()
                    with gr.Column(min_width=120, visible=bool(looks)):
                        laid = gr.Image(**plain)
                        heading = gr.Markdown()
                playing = gr.HTML(padding=False)
        outputs = [current, file_note, answer, seen, under, laid, heading, playing]
        read_file = file.upload(from_file, [file, method, *questions], [file, *outputs], preprocess=False, **ONCE)
        changes = [method.change, *([questions[0].submit, button.click] if questions else [])]
        for changed in changes:
            changed(see, [current, method, *questions], outputs[2:], **ONCE)
        if drawn:
            again = {"preprocess": False, "trigger_mode": "always_last"}
            pad.input(from_pad, [pad, file_note, method, *questions], outputs, **again, **ONCE)
            pad.clear(clear, None, [pad, *outputs], **ONCE)
            read_file.then(lambda: EMPTY, None, pad, show_progress="hidden", **ONCE)  # by itself: else it seems to wait
        gr.Button(elem_id=CHOSEN).click(lambda: (None, "", *see(None)), None, outputs, show_progress="hidden", **ONCE)
    return blocks.queue(api_open=False)  # no request bypasses the queue


def facts(loaded):
    """Returns the line below the page's name: sizes, classes, and what the weights reach."""
    task, size, classes = loaded.task, loaded.size, loaded.class_names
    color = "gray" if size[-1] == 1 else "color"
    if task.whole:
        line = f"whole images, {color}, up to {MOST_WHOLE / 1e6:g} million pixels"
    else:
        frames = "" if task.clips is None else f"{size[0]} frames of "
        line = f"{frames}{size[-3]} x {size[-2]} pixels, {color}"
    line = line.replace(", color", f", {size[-1]} bands") if size[-1] > 3 else line
    line += f", {len(classes)} classes" if classes else ""
    reached = loaded.bound.reached if loaded.shipped else None  # unknown for a run
    line += f", {reached.headline[0]} {written(*reached.headline)}" if reached else ""
    line += ", in brackets: labels that reach their threshold" if task.gives == "labels" else ""
    return f"{line}. {drawn}" if (drawn := bands.drawn(metadata(loaded.model), size[-1])) else line


def _questions(task):
    """Returns the box of texts, in a list, and its button."""
    import gradio as gr

    several = task.gives == "pairs"
    label = f"{task.asks}s, one on each line" if several else task.asks
    box = gr.Textbox(task.example, label=label, lines=4 if several else 1, info=hint(task))
    return [box], gr.Button("Compare" if several else "Answer")


def need_gradio():
    extras.need("The demo page", "demo", "gradio")
