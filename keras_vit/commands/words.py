"""Commands for models of images and texts: zero-shot, caption."""

import sys
from typing import Annotated

from keras_vit.commands.many import end, files_of, if_bad, needed, shown
from keras_vit.commands.types import MODEL, TOKENS, Count, File, Flag, Images, Text, Texts, about

INDEPENDENT = "Each probability is independent of the others: they need not sum to 100 %."


def print_zero_shot(
    images: Images = (),
    *,
    classes: Annotated[Texts, about("Names of the classes, each in quotes; required.", "NAME ...")] = (),
    model: Annotated[Text, about(f"{MODEL}, with an image tower and a text tower; required.")] = None,
    prompts: Annotated[Texts, about('Texts with {} for the name; by default "a photo of a {}.", or {}.')] = (),
    tokens: Annotated[Text, about(TOKENS)] = None,
    top: Count = 3,
    to: Annotated[File, about("File to write, which ends in .keras: a classifier of these classes.")] = None,
    overwrite: Flag = False,
) -> None:
    """Classify images by the names of classes, without training, with CLIP, SigLIP or a model of your own.

    Args:
        images: Image files, and folders of them.
        top: How many classes to name.
        overwrite: Replace the classifier that is there.
    """
    import numpy as np

    from keras_vit import frozen
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.explain.towers import usual_tokens
    from keras_vit.export.prepare import destination
    from keras_vit.utils import checks
    from keras_vit.utils.files import check_free

    checks.positive(top=top)
    if to and to.suffix != ".keras":
        raise ValueError(f"--to must end in .keras. Received: {str(to)!r}")
    if to:
        check_free(to, overwrite)
    files = files_of(images) if images or not to else []
    built = from_pretrained(needed(model), part="both")
    given = {"tokens": tokens or usual_tokens(built, model), "prompts": prompts or None}
    if to:
        with destination(to, overwrite) as temporary:
            frozen.zero_shot_classifier(built, classes, **given).save(temporary)
        print(to)
    if not files:
        return
    found = frozen.zero_shot(built, files, classes, bad_images=if_bad(files), **given)
    read = np.isfinite(found.probabilities).all(1)
    for file, row, fine in zip(files, found.probabilities, read):
        if fine:
            best = [f"{found.classes[i]} {row[i]:.1%}" for i in np.argsort(-row, kind="stable")[:top]]
            print(f"{shown(file)}: {', '.join(best)}")
    if found.kind == "sigmoid":
        print(INDEPENDENT, file=sys.stderr)
    end(read)


def print_captions(
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}, such as hf://Salesforce/blip-image-captioning-base; required.")] = None,
    tokens: Annotated[Text, about(TOKENS)] = None,
    prompt: Annotated[Text, about("What each text begins with.")] = None,
    beams: Count = 1,
    length: Annotated[Count, about("Most words and pieces of a text; 64 by default.")] = None,
) -> None:
    """Write a text about each image, or read the line of text in it, with BLIP, TrOCR or a model of your own.

    Args:
        images: Image files, and folders of them.
        beams: Beams of the search; with 1 the likeliest next word is taken each time.
    """
    import numpy as np

    from keras_vit import frozen
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.frozen.writing import stated_tokens
    from keras_vit.models.captioner import is_captioner, words_of

    files = files_of(images)
    built = from_pretrained(needed(model))
    if not is_captioner(built):
        raise ValueError(f"--model must write about images, as BLIP or a run of Caption. Received: {model!r}")
    tokens = tokens or (None if stated_tokens(words_of(built.get_layer("text"))) else model)
    given = {"prompt": prompt, "beams": beams, "length": length, "bad_images": if_bad(files)}
    found = frozen.generate_text(built, files, tokens, **given)
    read = np.isfinite(found.scores)
    for file, text, fine in zip(files, found.texts, read):
        if fine:
            print(f"{shown(file)}: {shown(text)}")
    end(read)
