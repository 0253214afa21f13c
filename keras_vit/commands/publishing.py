"""The command that publishes a trained model."""

from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.types import Flag, Folder, Run, Text, about

Repository = Annotated[Positional[str], about("Where to publish it on the Hugging Face hub.", "OWNER/NAME")]


def push(run: Run, repository: Repository, *, license: Text = None, private: Flag = False, to: Folder = None) -> None:
    """Publish a trained model on the Hugging Face hub, with a card.

    Args:
        license: Identifier of the hub for the license of the weights, such as apache-2.0.
        private: Let only the owner see a new repository.
        to: Folder to write everything to instead: nothing is uploaded.
    """
    from keras_vit.hub import push_to_hub

    print(push_to_hub(run, repository, license=license, private=private, folder=to))
