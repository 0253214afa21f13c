"""The demo page of a model that draws images: choose a class, and see what it draws from noise."""

from keras_vit.generation.sampling import check_drawing, sample
from keras_vit.models.outputs import distinct
from keras_vit.plots import canvas
from keras_vit.utils.metrics import written

PICTURES, STEPS, GUIDANCE, SEEDS = 8, 100, 8.0, 2**31 - 1  # drawn at once, and the largest settings of the page
SIDE = 168  # pixels of the longer side of a picture
NONE = "no class"
ABOUT = {
    "class": f"What to draw; “{NONE}” leaves it to the model.",
    "guidance": "How much the class counts: 1 is as learned, more makes images clearer and more alike, 0 ignores it.",
    "steps": "From noise to an image: more take longer and are finer.",
    "seed": "Which noise to begin with: the same number draws the same images again.",
}


def drawing_page(loaded):
    """Returns the page of a trained model of `Generate`, a `Trained`, as a `gradio.Blocks`."""
    import gradio as gr

    check_drawing(loaded.model)
    names, task = distinct(tuple(loaded.class_names)), loaded.task

    def draw(name, guidance, steps, seed):
        label = None if name == NONE else names.index(name)
        settings = {"guidance": float(guidance), "steps": int(steps), "seed": int(seed or 0)}
        images = sample(loaded.model, [label] * PICTURES, **settings, batch_size=PICTURES)
        return [canvas.painted(image.astype("float32"), side=SIDE) for image in images]

    height, width, channels = task.data_shape(loaded.size)
    facts = f"{width} x {height} pixels, {'gray' if channels == 1 else 'color'}, {len(names)} classes"
    reached = loaded.bound.reached if loaded.shipped else None
    facts += f", {reached.headline[0]} {written(*reached.headline)}" if reached else ""
    once = {"concurrency_limit": 1, "concurrency_id": "model", "api_visibility": "private"}
    with gr.Blocks(title=f"keras_vit: {loaded.bound.name}", analytics_enabled=False, delete_cache=(60, 300)) as blocks:
        gr.Markdown(f"# {loaded.bound.name}\n{facts}")
        with gr.Row():
            with gr.Column():
                name = gr.Dropdown([*names, NONE], value=[*names, NONE][0], label="Class", info=ABOUT["class"])
                guided = {"value": min(task.guidance, GUIDANCE), "step": 0.25, "info": ABOUT["guidance"]}
                guidance = gr.Slider(0, GUIDANCE, label="Guidance", **guided)
                counted = {"value": min(task.steps, STEPS), "step": 1, "info": ABOUT["steps"]}
                steps = gr.Slider(1, STEPS, label="Steps", **counted)
                seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=SEEDS, info=ABOUT["seed"])
                button = gr.Button("Draw")
            with gr.Column():
                pictures = gr.Gallery(label="Drawn from noise", columns=4, format="png", buttons=[], interactive=False)
        button.click(draw, [name, guidance, steps, seed], pictures, **once)
    return blocks.queue(api_open=False)  # no request bypasses the queue
