"""Commands for models of images and texts: zero-shot, caption."""

import sys
from typing import Annotated

from keras_vit.commands.many import files_of, needed, show, shown, tables_of
from keras_vit.commands.types import FRAMES, MODEL, TOKENS, Count, File, Flag, Images, Text, Texts, about

INDEPENDENT = "Each probability is independent of the others: they need not sum to 100 %."


def print_zero_shot(
    images: Images = (),
    *,
    classes: Annotated[Texts, about("Names of the classes, each in quotes; required.", "NAME ...")] = (),
    model: Annotated[Text, about(f"{MODEL}, with an image tower and a text tower; required.")] = None,
    prompts: Annotated[Texts, about('Texts with {} for the name; by default "a photo of a {}.", or {}.')] = (),
    tokens: Annotated[Text, about(TOKENS)] = None,
    top: Count = 3,
    frames: Annotated[Count, about(FRAMES)] = None,
    to: Annotated[File, about("File to write, which ends in .keras: a classifier of these classes.")] = None,
    overwrite: Flag = False,
    json: File = None,
    csv: File = None,
) -> None:
    """Classify images or clips by the names of classes, without training, with CLIP, SigLIP or a model of your own.

    Args:
        images: Image files, and folders of them.
        top: How many classes to name.
        json: File for all answers, one entry for each image and class that is named.
        csv: File for the same as a table.
        overwrite: Replace the classifier that is there.
    """
    import numpy as np

    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.explain.towers import towers_of, usual_tokens
    from keras_vit.inference.zero_shot import kind_of, one_by_one, zero_shot_classifier
    from keras_vit.models.by_frames import by_frames
    from keras_vit.utils import checks
    from keras_vit.utils.files import check_free, destination

    checks.positive(top=top)
    if to and to.suffix != ".keras":
        raise ValueError(f"--to must end in .keras. Received: {str(to)!r}")
    if to:
        check_free(to, overwrite)
    files = files_of(images) if images or not to else []
    paths = tables_of(json, csv)
    built = from_pretrained(needed(model), part="both")
    texts = {"tokens": tokens or usual_tokens(built, model), "prompts": prompts or None}
    if to:
        whole = built if frames is None else by_frames(built, frames)
        with destination(to, overwrite) as temporary:
            zero_shot_classifier(whole, classes, **texts).save(temporary)
        print(to)
    if not files:
        return
    if kind_of(towers_of(built)) == "sigmoid":
        print(INDEPENDENT, file=sys.stderr)

    def best(shares):
        return [(classes[i], float(shares[i])) for i in np.argsort(-shares, kind="stable")[:top]]

    show(
        one_by_one(built, files, classes, **texts, frames=frames),
        len(files),
        lambda file, shares: f"{shown(file)}: {', '.join(f'{name} {share:.1%}' for name, share in best(shares))}",
        paths,
        lambda file, shares: [
            {"image_id": str(file), "name": name, "value": round(share, 6)} for name, share in best(shares)
        ],
    )


def print_captions(
    images: Images = (),
    *,
    model: Annotated[Text, about(f"{MODEL}, such as hf://Salesforce/blip-image-captioning-base; required.")] = None,
    tokens: Annotated[Text, about(TOKENS)] = None,
    prompt: Annotated[Text, about("What each text begins with.")] = None,
    beams: Count = 1,
    length: Annotated[Count, about("Most words and pieces of a text; the model's own, or 64, by default.")] = None,
    json: File = None,
    csv: File = None,
) -> None:
    """Write a text about each image, or read the line of text in it, with BLIP, TrOCR or a model of your own.

    Args:
        images: Image files, and folders of them.
        beams: Beams of the search; with 1 the likeliest next word is taken each time.
        json: File for all texts, one entry for each image, with its text and its score.
        csv: File for the same as a table.
    """
    from keras_vit.checkpoints.pretrained import from_pretrained
    from keras_vit.generation import generate_text as writing
    from keras_vit.models.captioner import words_of
    from keras_vit.traits import traits_of

    files, paths = files_of(images), tables_of(json, csv)
    built = from_pretrained(needed(model))
    traits_of(built, "--model must write about images, as BLIP or a run of Caption.", model, structure="captioner")
    tokens = tokens or (None if writing.stated_tokens(words_of(built.get_layer("text"))) else model)
    plan = writing.planned(built, files, tokens, prompt=prompt, beams=beams, length=length)
    show(
        writing.one_by_one(plan),
        len(files),
        lambda file, caption: f"{shown(file)}: {shown(caption[0])}",
        paths,
        lambda file, caption: [{"image_id": str(file), "text": caption[0], "score": round(caption[1], 6)}],
        ("image_id", "text", "score"),
    )
