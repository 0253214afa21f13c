"""Packs CIFAR-10's images as they are stored, JPEG or PNG, into files to carry to a machine without TensorFlow.

TFDS_DATA_DIR=... python benchmarks/gpu/pack.py DIRECTORY --files 2

Each file has `bytes` (all images of its part, one after the other), `sizes`, `labels` and `test` (of the test split).
"""

import argparse
import pathlib

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=1)
    given = parser.parse_args()
    import tensorflow_datasets as tfds

    read = {"image": tfds.decode.SkipDecoding()}
    stored, labels, test = [], [], []
    for split in ("train", "test"):
        for example in tfds.as_numpy(tfds.load("cifar10", split=split, decoders=read, download=False)):
            stored.append(example["image"])
            labels.append(example["label"])
            test.append(split == "test")
    given.directory.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(np.array_split(np.arange(len(stored)), given.files)):
        np.savez(
            given.directory / f"cifar10-{i}.npz",
            bytes=np.frombuffer(b"".join(stored[k] for k in part), "uint8"),
            sizes=np.array([len(stored[k]) for k in part]),
            labels=np.array([labels[k] for k in part], "int32"),
            test=np.array([test[k] for k in part]),
        )


if __name__ == "__main__":
    main()
