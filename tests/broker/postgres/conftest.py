"""The broker whose doors are tested."""

from __future__ import annotations

from tests.broker.doors import door as door
