"""Hashes of the bytes of files."""

import hashlib

import numpy as np

DIGEST = 16  # bytes


def digest_of(data):
    """Returns a hash of bytes, uint8 `(DIGEST,)`."""
    return np.frombuffer(_hash(data).digest(), "uint8")


def digest_of_file(path):
    """Returns what `digest_of` does of a file's bytes, of which few are in memory at once."""
    with open(path, "rb") as file:
        return np.frombuffer(hashlib.file_digest(file, _hash).digest(), "uint8")


def _hash(data=b""):
    return hashlib.blake2b(data, digest_size=DIGEST)
