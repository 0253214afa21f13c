"""Fixtures of the hub."""

from tests.hub.fixtures import hub, run  # noqa: F401
