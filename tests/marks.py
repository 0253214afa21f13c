"""Marks that several tests use."""

import os

import pytest

once = pytest.mark.skipif("KERAS_VIT_HIDE_TENSORFLOW" in os.environ, reason="one backend is enough")
