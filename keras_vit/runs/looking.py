"""Pictures of what a trained model attends to, and of its training."""

import functools
import itertools

import keras
import numpy as np

from keras_vit.explain.attention import attention_rollout
from keras_vit.explain.queries import has_queries, where_queries_look
from keras_vit.explain.relevance import attention_relevance, has_classes
from keras_vit.explain.texts import attention_of_answer, attention_of_text, attention_of_words
from keras_vit.explain.word_maps import attention_over_source
from keras_vit.models.captioner import words_of
from keras_vit.models.inputs import fed
from keras_vit.plots import canvas, lettering
from keras_vit.plots.clip_figures import in_a_row
from keras_vit.runs import references
from keras_vit.runs.passage import read
from keras_vit.runs.results import need_data, some_images
from keras_vit.runs.sampled import draws_images
from keras_vit.runs.trained import load_run
from keras_vit.runs.translated import ids_of_texts
from keras_vit.training import rundir
from keras_vit.utils import checks
from keras_vit.utils.files import replacing

WRITTEN = 8  # images whose words are drawn, and clips that are animated, at most
ANIMATED = "attention.gif"  # of clips
SIMILARITY = "Similarity: bright patches are near the text"


def explain(target, files=(), folder=None, *, texts=None):
    """Draws what a trained model attends to, and the training curves of its run.

    Args:
        target: As in `load_run`.
        files: Image files, or texts to translate; the first eight examples of the test split if empty.
        texts: As in `predict`, for tasks that take a text with each of the files.
        folder: Where to write `attention.png`, `curves.png` and, for a task that draws its outputs, `pictures.png`; as
            in `export` if `None`.

    Returns:
        The paths of the pictures.
    """
    trained = load_run(target)
    if files and draws_images(trained):
        raise ValueError(f"A model that draws images takes none: leave them out. Received: {len(files)} files")
    if not files:
        need_data(trained, "image files")
    if files:
        references.check_none(trained, "The picture of files")
    asked = trained.ids_of(texts, len(files)) if files else {}
    look = functools.partial(*(ids_of_texts, trained.task) if trained.task.of_texts else (read, trained))
    inputs = {"images": look(files), **asked} if files else {}
    examples = inputs or some_images(trained, trained.recipe.data.test, 8)
    images, task = examples["images"], trained.task
    from keras_vit import plots
    from keras_vit.training import history

    outputs = trained.viewer()(fed(examples, task.inputs))
    titles = [task.heading(output) for output in outputs]
    if "texts" in inputs:
        questions = [task.text_of(text) for text in inputs["texts"]]
        titles = [f"{text}{'' if text.endswith('?') else ':'} {title}" for text, title in zip(questions, titles)]
    if not files and len(examples) > 1:  # with targets: as the report, what is true and what is predicted
        each = [{name: values[i] for name, values in examples.items()} for i in range(len(images))]
        titles = [task.caption(*pair) for pair in zip(outputs, each)]
    folder = checks.path("folder", folder or trained.home)
    folder.mkdir(parents=True, exist_ok=True)
    attended = _attention(trained, examples, outputs, titles)
    figures = {"attention.png": attended} if attended else {}
    if trained.run and (trained.run / rundir.HISTORY).exists():
        figures["curves.png"] = plots.plot_history(history.read(trained.run))
    if task.draws:
        drawn = canvas.as_bytes(images, trained.about.range)
        pictures = [task.picture(*pair) for pair in zip(drawn, outputs)]
        figures["pictures.png"] = plots.plot_pictures(pictures, titles)
    for name, figure in figures.items():
        with replacing(folder / name) as temporary:
            figure.savefig(temporary, format="png")
    if task.clips is not None and attended and trained.about.structure != "captioner":  # whose words are many maps
        few = {name: values[:WRITTEN] for name, values in examples.items()}
        with replacing(folder / ANIMATED) as temporary:
            plots.write_animation(temporary, few["images"], _heats(trained.about, few))
        return [folder / name for name in (*figures, ANIMATED)]
    return [folder / name for name in figures]


def support_of(about):
    """Returns the function from a model's inputs, a dictionary, to the relevance of each patch for its answers.

    `None` of one that gives no answers for whole images, and on a backend without gradients.

    Args:
        about: The model's `Traits`.
    """
    model = about.model
    if keras.backend.backend() not in ("tensorflow", "jax"):
        return None
    if about.reads_both:
        return lambda examples: attention_of_answer(model, examples["images"], examples["texts"])[0]
    if about.tower is model and has_classes(model):
        return lambda examples: attention_relevance(model, examples["images"])
    return None


def similarity_of(model, images, ids):
    """Returns where images show what a text says, by the texts' ids; see `attention_of_text`.

    Args:
        model: A model with two towers.
        images: Its images.
        ids: Ids of each image's text, `(batch, length)`.

    Returns:
        float32 array, `(batch, rows, columns)`; of clips `(batch, steps, rows, columns)`.
    """
    rows, place = np.unique(ids, axis=0, return_inverse=True)
    maps = attention_of_text(model, images, [str(i) for i in range(len(rows))], lambda texts: rows)
    return maps[np.arange(len(images)), place.ravel()]


def _attention(trained, examples, outputs, titles):
    """Returns the figure of where a model looked, or `None`."""
    draw = FIGURES.get(trained.about.structure, _attended)
    return draw(trained, examples, outputs, titles)


def _nothing(trained, examples, outputs, titles):
    """Returns `None`: a model that draws images looks at none, and the mask of a sentence is drawn as a picture."""


def _written(trained, examples, outputs, titles):
    """Returns a figure of where a captioner looked for each word that it wrote."""
    from keras_vit import plots

    model, images = trained.model, examples["images"][:WRITTEN]
    ids, words = _words_written(trained, outputs)
    pictures = canvas.as_bytes(images, trained.about.range)
    drawn = in_a_row(pictures, attention_of_words(model, images, ids), axis=1)
    return plots.plot_words(*drawn, words, titles[:WRITTEN])


def _words_written(trained, outputs):
    """Returns the ids that a model wrote, with their start, and for each text a list of its words."""
    marks = words_of(trained.model.get_layer("text")).metadata
    ids = np.insert(np.asarray(outputs)[:WRITTEN, :-1].astype("int32"), 0, marks["start"], axis=1)
    return ids, [_words(trained.task, row, marks) for row in ids[:, 1:].tolist()]


def _words(task, ids, marks):
    """Returns the words of ids up to the end, as a list of texts."""
    whole = itertools.takewhile(lambda id: id not in (marks["end"], marks["pad"]), ids)
    named = task.ids_of().texts if task.words or task.tokens else lambda rows: [str(id) for [id] in rows]
    return named([[id] for id in whole])


def _translated(trained, examples, outputs, titles):
    """Returns a figure of which words of the source were read for each word that was written."""
    from keras_vit import plots

    sources = np.asarray(examples["images"][:WRITTEN])
    ids, words = _words_written(trained, outputs)
    marks = words_of(trained.model.get_layer("text")).metadata
    read_words = [_words(trained.task, row, marks) for row in sources.tolist()]
    chosen = [i for i, row in enumerate(words) if row and read_words[i]]
    if not chosen:
        return None
    maps = attention_over_source(trained.model, sources, ids).mean((0, 2))  # of all blocks and heads
    each = [[of[i] for i in chosen] for of in (maps, words, read_words, titles)]
    figure = plots.plot_word_maps(*each)
    lettering.heading(figure, "What was read (columns) for each word or letter (rows)")
    return figure


def _similar(trained, examples, outputs, titles):
    """Returns a figure of where images are near their texts."""
    from keras_vit import plots

    pictures = canvas.as_bytes(examples["images"], trained.about.range)
    draw = plots.plot_maps if trained.task.clips is None else plots.plot_clips
    figure = draw(pictures, similarity_of(trained.model, examples["images"], examples["texts"]), titles)
    lettering.heading(figure, SIMILARITY)
    return figure


def _attended(trained, examples, outputs, titles):
    """Returns a figure of where a model looked for its answer, or at all."""
    from keras_vit import plots

    about, images = trained.about, examples["images"]
    if about.image_model is None and not about.reads_both:  # attention depends on another input too
        return None
    pictures, support = canvas.as_bytes(images, about.range), support_of(about)
    if has_queries(about.model):
        return plots.plot_maps(pictures, where_queries_look(about.model, images), titles)
    if trained.task.clips is not None:
        return plots.plot_clips(pictures, _heats(about, examples), titles)
    if about.reads_both:
        return plots.plot_maps(pictures, support(examples), titles) if support else None
    return plots.plot_attention(about.tower, images, titles, "relevance" if support else "rollout")


# By `Traits.structure`; others are `_attended`.
FIGURES = {
    "dit": _nothing,
    "open_segmenter": _nothing,
    "captioner": _written,
    "translator": _translated,
    "towers": _similar,
}


def _heats(about, examples):
    """Returns the heat maps of clips, `(batch, steps, rows, columns)`: similarity to texts, relevance, or rollout."""
    if about.structure == "towers":
        return similarity_of(about.model, examples["images"], examples["texts"])
    support = support_of(about)
    return support(examples) if support else attention_rollout(about.model, examples["images"])
