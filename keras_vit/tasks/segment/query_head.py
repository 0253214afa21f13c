"""The head with queries on any encoder, and how it is trained: what semantic, instance and panoptic masks share."""

from keras_vit.tasks import dense
from keras_vit.tasks.segment.query_learner import QueryLearner

QUERIES, LAST, UPSCALES = 100, 4, 2  # what `None` means without weights that say it


def built(task, arguments):
    """Returns the encoder, and the model from its images to a class and a mask for each query; see `QueryMasks`.

    Of weights with such a head, it has the head's sizes.

    Args:
        task: A `Segment` with the head `"queries"`.
        arguments: Arguments of `keras_vit.vit`, a dictionary.

    Raises:
        ValueError: As `dense.encoder` and `query_encoder`.
    """
    from keras_vit.models import anatomy
    from keras_vit.models.map_heads import with_head
    from keras_vit.models.query_encoder import with_queries

    if arguments.get("patch_dropout"):
        raise ValueError(
            f"Masks need all patches. Received: model.patch_dropout={arguments['patch_dropout']!r} with queries"
        )
    encoder = dense.encoder(arguments, len(task.classes), "segmenter")
    stated = dense.head_in(arguments.get("weights")) if arguments.get("head") != "new" else None
    stated = stated if stated and stated["kind"] == "segments" else {}
    own = {name: value for name, value in task.head_options.items() if value is not None and name != "masked"}
    depth, block = len(anatomy.blocks(encoder)), encoder.get_layer("block_0")
    last = own.pop("depth", stated.get("last", min(LAST, max(depth // 3, 1))))
    row = {
        "queries": QUERIES,
        "upscales": UPSCALES,
        "gelu": block.gelu,
        "epsilon": block.epsilon,
        **stated,
        **own,
        "kind": "segments",
        "blocks": (depth - 1,),
        "normed": True,
        "last": last,
        "units": len(task.classes),
    }
    model = with_queries(encoder, row["queries"], last)
    for layer in encoder.layers:
        model.get_layer(layer.name).set_weights(layer.get_weights())
    return encoder, with_head(model, row)


def learner(model):
    """Returns the `QueryLearner` of a model with queries; of one that goes on after its head, of the part before."""
    from keras_vit.layers.functional import Model

    head = model.get_layer("head")
    return QueryLearner(model if model.layers[-1] is head else Model(model.input, head.output, name=model.name))


def set_steps(task, run):
    """Tells the learner of a run after how many steps queries attend to all patches."""
    run.learner.steps = run.steps * run.recipe.optim.epochs if task.head_options["masked"] else 0
