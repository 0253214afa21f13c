"""A model that writes texts, about images or on its own: the encoder once, then one step a word."""

import functools

import keras
from keras import ops

from keras_vit.generation.decoding import context_of, empty_cache, step
from keras_vit.generation.search import beam_search, one_by_one, room
from keras_vit.models.captioner import is_captioner, words_of


class Writer(keras.Model):
    """Writes a fixed number of texts that begin with at most a fixed number of ids.

    Its inputs are `texts`, `(count, first)`, int32, and of a captioner `images`, as many. Its outputs are ids, `(count,
    length)`, and the texts' scores. If words are drawn, `draws` is an input too, as `one_by_one` takes it. With the
    input `fillers`, `(count,)`, int32, so many ids before each text are none of it, and the ids have `first - 1` more.

    Args:
        model: A model from `captioner`, or from `text_decoder` without a context.
        count: Number of texts.
        first: Ids that each begins with.
        rules: `Rules`.
        beams: Number of beams; with 1 the likeliest next word is taken each time.
    """

    def __init__(self, model, count, first, rules, beams=1):
        super().__init__(name="writer")
        image, text = parts_of(model)
        self.image = image
        self.text = text
        self.size = (count, first)
        self.rules = rules
        self.beams = beams
        search = one_by_one if beams == 1 else functools.partial(beam_search, beams=beams)
        self.search = functools.partial(search, rules=rules)

    def call(self, inputs):
        context = None
        if self.image is not None:
            context = context_of(self.text, self.image(inputs["images"], training=False))
        begun = ops.reshape(inputs["texts"], self.size)
        fillers = inputs.get("fillers")
        cache = empty_cache(self.text, self.size[0], room(self.size[1], self.rules, fillers))
        logits, cache = step(self.text, begun, 0, cache, context, fillers)
        every = None if fillers is None else ops.repeat(fillers, self.beams)
        following = functools.partial(step, self.text, context=context, fillers=every)
        draws = {"draws": inputs["draws"]} if "draws" in inputs else {}
        return self.search(following, logits, cache, begun, fillers=fillers, **draws)


def parts_of(model):
    """Returns the image tower, or `None`, and the decoder of a model that writes; raises ValueError for another."""
    if is_captioner(model):
        return model.get_layer("image"), model.get_layer("text")
    words_of(model)
    if isinstance(model.input, dict):
        raise ValueError(
            "A decoder with a context must be joined with an image tower by keras_vit.captioner. "
            f"Received: {model.name!r} alone"
        )
    return None, model
