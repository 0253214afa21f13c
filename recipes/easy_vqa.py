"""Questions about drawings: 4,000 colored shapes and 38,575 questions to train on, 13 answers.

python recipes/easy_vqa.py easy-VQA/data easy_vqa
python -m keras_vit fit easy_vqa data.source=folder:easy_vqa
python -m keras_vit predict easy_vqa drawing.png --text "what color is the shape?"

The drawings are from https://github.com/vzhou842/easy-VQA. The first command copies them and writes their questions as
tables.

Of the 9,673 questions about 1,000 other drawings, 99.93 % are answered right. The most frequent answer to each question
alone is right for 67.0 %. It took 13 minutes on two CPU cores that also did other work.
"""

from keras_vit.config import Answer, Augment, Data, Optim, Reached, Recipe, Weights

recipe = Recipe(
    name="easy_vqa",
    task=Answer(length=12, vocabulary=112, hidden=96, example="what color is the shape?"),
    model=dict(variant=None, image_size=64, stem=((24, 2), (48, 2), (96, 2), (96, 2)), patch_size=1, width=96, depth=3,
               num_heads=4, mlp_dim=192, num_classes=13),
    data=Data(source="folder:easy_vqa", train="train[:95%]", validation="train[95%:]", test="test", batch_size=256),
    augment=Augment(translation=0.1),
    optim=Optim(optimizer="muon", epochs=12, learning_rate=4e-3, weight_decay=0.05, warmup_epochs=0.5),
    weights=Weights(file="easy_vqa.keras", sha256="45eefc488316625a47c3c6e15e591fc07d396913404ecee2f021a71cfb522674"),
    reached=Reached(test_accuracy=0.9993, minutes=13.0, device="2 CPU cores, x86-64", commit="9d1b1079",
                    note="the cores were shared with other work"),
)  # fmt: skip


def main(source, folder, splits=("train", "test")):
    """Copies the drawings, and writes a table of all questions next to those of each split."""
    import csv
    import json
    import pathlib
    import shutil

    for split in splits:
        read, write = pathlib.Path(source, split), pathlib.Path(folder, split)
        questions = json.loads((read / "questions.json").read_text())
        shutil.copytree(read / "images", write / "images")
        with (write / "metadata.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("file_name", "question", "answer"))
            table.writerows((f"images/{image}.png", question, answer) for question, answer, image in questions)
        print(f"{write}: {len(questions)} questions")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
