"""The charts of a report, as Plotly figures. Colours fit a light page and a dark one; the page colours the words."""

import base64
import html
import io

import numpy as np

from keras_vit import explain
from keras_vit.explain.answers import confusion as answers_by_class
from keras_vit.plots import canvas
from keras_vit.plots.answers import WRITTEN
from keras_vit.plots.history import PANELS

GRID, BLUE, RED = "rgba(128,128,128,0.25)", *canvas.COLOURS[:2]
QUALITY = 85  # of JPEG
LISTED, LETTERS = 40, 24  # names on an axis, and letters of a name, at most


def curves(history):
    """Returns a chart for each of the columns of a run's history that are drawn."""
    return {label: _curve(history, panel, label, other) for panel, (label, other) in PANELS.items() if panel in history}


def _curve(history, panel, label, validation):
    lines = [(panel, "training", BLUE), (validation, "validation", RED)]
    lines = [line for line in lines if line[0] in history]
    traces = [
        {"x": list(range(1, len(history[column]) + 1)), "y": history[column], "name": name, "line": {"color": colour},
         "mode": "lines" if len(history[column]) > 1 else "markers"}
        for column, name, colour in lines
    ]  # fmt: skip
    return _figure(
        traces, xaxis={"title": "epoch", "tickformat": "d"}, yaxis={"title": label}, showlegend=len(lines) > 1
    )


def confusion(labels, answers, class_names):
    """Returns how often each class is answered for each."""
    matrix, shares = answers_by_class(labels, answers, len(class_names))
    few = len(class_names) <= WRITTEN
    trace = {
        "type": "heatmap",
        "z": shares.round(3).tolist(),
        "text": matrix.tolist() if few else None,  # of a thousand classes it would be megabytes
        "colorscale": "Blues",
        "zmin": 0,
        "zmax": 1,
        "hovertemplate": "%{y}, called %{x}: " + "%{text} images, " * few + "%{z:.1%}<extra></extra>",
        "texttemplate": "%{text}" if few else None,
        "showscale": False,
    }
    names = _names([_short(name) for name in class_names])
    return _figure(
        [trace], xaxis={**names, "title": "answer"}, yaxis={**names, "title": "truth", "autorange": "reversed"}
    )


def per_class(labels, probabilities, class_names):
    """Returns precision and recall of the classes, those of the least recall on top."""
    found = explain.per_class(labels, probabilities)
    order = np.argsort(found["recall"], kind="stable")[:LISTED]
    names = _names([f"{_short(class_names[i])} ({found['support'][i]})" for i in order])
    traces = [
        {"x": found[measure][order].tolist(), "y": list(range(len(order))), "name": measure, "mode": "markers",
         "hovertemplate": "%{y}: %{x:.1%}", "marker": {"color": colour, "symbol": symbol, "size": 9}}
        for measure, colour, symbol in (("recall", BLUE, "circle"), ("precision", RED, "diamond"))
    ]  # fmt: skip
    share = {"title": "share", "tickformat": ".0%", "range": [min(0.98, *_least(traces)) - 0.02, 1.02]}
    return _figure(traces, xaxis=share, yaxis={**names, "range": [len(order) - 0.5, -0.5]}, showlegend=True)


def calibration(found):
    """Returns how often the model is right when it is so sure; `found` is what `explain.calibration` returns."""
    bins = len(found.count)
    full = np.flatnonzero(found.count)
    traces = [
        {"x": [0, 1], "y": [0, 1], "mode": "lines", "line": {"dash": "dot", "color": "#888888"}, "hoverinfo": "skip"},
        {"type": "bar", "x": ((full + 0.5) / bins).tolist(), "y": found.accuracy[full].tolist(), "width": 0.9 / bins,
         "customdata": np.stack([found.confidence, found.count], 1)[full].tolist(), "marker": {"color": BLUE},
         "hovertemplate": "%{customdata[1]:.0f} images: sure by %{customdata[0]:.1%}, right %{y:.1%}<extra></extra>"},
    ]  # fmt: skip
    axes = {"range": [0, 1.02], "tickformat": ".0%"}
    return _figure(traces, xaxis={**axes, "title": "probability of the answer"}, yaxis={**axes, "title": "right"})


def embedding(points, labels, probabilities, class_names):
    """Returns the map of embeddings, with what each point is under the pointer."""
    traces = []
    for i in np.unique(labels):
        here = np.flatnonzero(labels == i)
        truth = html.escape(str(class_names[i]))
        answers = [(k, html.escape(str(class_names[probabilities[k].argmax()])), probabilities[k].max()) for k in here]
        told = [f"image {k}: {truth}, called {answer} ({sure:.0%})" for k, answer, sure in answers]
        marker = {"color": canvas.COLOURS[i % len(canvas.COLOURS)], "symbol": int(i // len(canvas.COLOURS) % 30)}
        x, y = points[here].T.round(3).tolist()
        traces.append({"x": x, "y": y, "mode": "markers", "name": html.escape(_short(class_names[i])), "text": told,
                       "hovertemplate": "%{text}<extra></extra>", "marker": {**marker, "size": 6}})  # fmt: skip
    bare = {"visible": False}
    return _figure(traces, xaxis=bare, yaxis=bare, showlegend=len(traces) <= 48)


def distance(distances):
    """Returns how far each head looks; `distances` is what `explain.attention_distance` returns."""
    layers, heads = distances.shape
    places = np.repeat(np.arange(layers), heads).tolist()
    told = [f"block {layer}, head {head}" for layer in range(layers) for head in range(heads)]
    trace = {"x": places, "y": distances.ravel().round(2).tolist(), "mode": "markers", "text": told,
             "hovertemplate": "%{text}: %{y} pixels<extra></extra>", "marker": {"color": BLUE, "size": 8}}  # fmt: skip
    axis = {"title": "mean attention distance, pixels", "rangemode": "tozero"}
    return _figure([trace], xaxis={"title": "block", "dtick": 1 + layers // 16}, yaxis=axis)


def gallery(steps):
    """Returns pictures of which a slider shows one.

    Args:
        steps: Dictionary from the slider's words to pictures: uint8 arrays of one shape.
    """
    sources = {word: jpeg(picture) for word, picture in steps.items()}
    image = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "sizex": 1, "sizey": 1, "sizing": "contain",
             "layer": "above", "source": next(iter(sources.values()))}  # fmt: skip
    slider = {
        "pad": {"t": 10, "b": 10},
        "x": 0.05,
        "len": 0.9,
        "currentvalue": {"prefix": "", "font": {"size": 15}},
        "steps": [
            {"label": word, "method": "relayout", "args": [{"images[0].source": source}]}
            for word, source in sources.items()
        ],
    }
    bare = {"visible": False, "fixedrange": True}
    figure = _figure([], xaxis=bare, yaxis=bare, images=[image], sliders=[slider])
    return figure.update_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False)


def jpeg(pixels):
    """Returns a picture as the address of an image that holds it."""
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"


def _least(traces):
    return (min((x for x in trace["x"] if x == x), default=1) for trace in traces)  # without NaN


def _short(name):
    """Returns a class's name, no longer than an axis has room for."""
    name = str(name)
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def _names(texts):
    """Returns what an axis of numbers says: by their own names equal ones would be one."""
    shown = range(0, len(texts), -(-len(texts) // LISTED))
    return {"tickvals": list(shown), "ticktext": [html.escape(texts[i]) for i in shown]}


def _figure(traces, xaxis, yaxis, **layout):
    import plotly.graph_objects

    lines = {"gridcolor": GRID, "zerolinecolor": GRID, "automargin": True, "title_standoff": 12}
    layout = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 50, "r": 10, "t": 10, "b": 40},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "showlegend": False,
        "xaxis": {**lines, **xaxis},
        "yaxis": {**lines, **yaxis},
        **layout,
    }
    return plotly.graph_objects.Figure(traces, layout)
