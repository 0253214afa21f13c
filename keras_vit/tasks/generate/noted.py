"""What a model of `Generate` says of itself in its file."""

from keras_vit.generation.sampling import UNGUIDED
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.models.schedules import SCHEDULE, SHIFT
from keras_vit.models.whole_autoencoder import SCALE


def note(task, metadata):
    """Writes into a model's metadata how it is trained, in place of what weights that it starts from say.

    Args:
        task: The `Generate`.
        metadata: Dictionary that is saved with the model, which is changed.
    """
    from keras_vit.checkpoints.autoencoder import address

    known = {
        UNGUIDED: None if task.label_drop else True,
        SHIFT: None if task.shift == 1 else task.shift,
        AUTOENCODER: address(task.autoencoder) if task.autoencoder else None,
        SCALE: None,  # of the latents of another autoencoder; `teacher_for` writes it
        SCHEDULE: None,  # of a published model, which predicts noise
    }
    for name, value in known.items():
        metadata.pop(name, None)
        metadata.update({} if value is None else {name: value})
