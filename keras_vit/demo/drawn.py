"""The demo page of a model that draws images: choose a class, or write a text, and see what it draws from noise."""

from keras_vit.demo import markup
from keras_vit.demo.seeing import hint, notes_on
from keras_vit.generation.sampling import check_drawing, sample
from keras_vit.models.outputs import distinct
from keras_vit.plots import canvas
from keras_vit.utils.metrics import written

PICTURES, STEPS, GUIDANCE, SEEDS = 8, 100, 8.0, 2**31 - 1  # drawn at once, and the largest settings of the page
SIDE = 168  # pixels of the longer side of a picture
NONE = "no class"
ABOUT = {
    "class": f"What to draw; “{NONE}” leaves it to the model.",
    "guidance": "How much the {} counts: 1 is as learned, more makes images clearer and more alike, 0 ignores it.",
    "steps": "From noise to an image: more take longer and are finer.",
    "seed": "Which noise to begin with: the same number draws the same images again.",
}


def drawing_page(loaded):
    """Returns the page of a trained model of `Generate`, a `Trained`, as a `gradio.Blocks`."""
    import gradio as gr

    check_drawing(loaded.model)
    names, task = distinct(tuple(loaded.class_names)), loaded.task

    def draw(asked, guidance, steps, seed):
        if task.text:
            return _of_text(loaded, asked, guidance, steps, seed)
        return _pictures(loaded, None if asked == NONE else names.index(asked), guidance, steps, seed), ""

    height, width, channels = task.data_shape(loaded.size)
    facts = f"{width} x {height} pixels, {'gray' if channels == 1 else 'color'}"
    facts += "" if task.text else f", {len(names)} classes"
    reached = loaded.bound.reached if loaded.shipped else None
    facts += f", {reached.headline[0]} {written(*reached.headline)}" if reached else ""
    once = {"concurrency_limit": 1, "concurrency_id": "model", "api_visibility": "private"}
    with gr.Blocks(title=f"keras_vit: {loaded.bound.name}", analytics_enabled=False, delete_cache=(60, 300)) as blocks:
        gr.Markdown(f"# {loaded.bound.name}\n{facts}")
        with gr.Row():
            with gr.Column():
                if task.text:
                    asked = gr.Textbox(task.example, label=task.asks, info=hint(task))
                else:
                    asked = gr.Dropdown([*names, NONE], value=[*names, NONE][0], label="Class", info=ABOUT["class"])
                about = ABOUT["guidance"].format("text" if task.text else "class")
                guided = {"value": min(task.guidance, GUIDANCE), "step": 0.25, "info": about}
                guidance = gr.Slider(0, GUIDANCE, label="Guidance", **guided)
                counted = {"value": min(task.steps, STEPS), "step": 1, "info": ABOUT["steps"]}
                steps = gr.Slider(1, STEPS, label="Steps", **counted)
                seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=SEEDS, info=ABOUT["seed"])
                button = gr.Button("Draw")
            with gr.Column():
                notes = gr.HTML(padding=False)
                pictures = gr.Gallery(label="Drawn from noise", columns=4, format="png", buttons=[], interactive=False)
        for begun in (button.click, *([asked.submit] if task.text else [])):
            begun(draw, [asked, guidance, steps, seed], [pictures, notes], **once)
    return blocks.queue(api_open=False)  # no request bypasses the queue


def _of_text(loaded, text, guidance, steps, seed):
    """Returns pictures of a text, and notes on its words, as HTML; none and why, of a text that cannot be drawn."""
    text, task = " ".join((text or "").split()), loaded.task
    if not text:
        return [], markup.answer(notes=[f"Write a {task.asks.lower()}, and press the button."])
    try:
        ids = loaded.ids_of(text, PICTURES)["texts"]
    except ValueError as error:  # of a text that is too long
        return [], markup.answer(notes=[str(error)])
    return _pictures(loaded, ids, guidance, steps, seed), markup.answer(notes=notes_on(task, text))


def _pictures(loaded, asked, guidance, steps, seed):
    """Returns pictures of a label, or of a row of ids for each."""
    asked = asked if getattr(asked, "ndim", 0) else [asked] * PICTURES
    settings = {"guidance": float(guidance), "steps": int(steps), "seed": int(seed or 0)}
    images = sample(loaded.model, asked, **settings, batch_size=PICTURES)
    return [canvas.painted(image.astype("float32"), side=SIDE) for image in images]
