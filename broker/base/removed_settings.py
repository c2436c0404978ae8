"""Settings that there were: the environment may still give them, and is told that they have no effect."""

from __future__ import annotations

from collections.abc import Mapping

REMOVED = {"initial_hash_buckets": "state begins with the room that it needs"}
"""What is so instead, by name."""


def removed_warning(environment: Mapping[str, str]) -> str | None:
    """The warning about the settings that an environment still gives; None: it gives none."""
    given = {name.upper() for name in environment}
    variables = {f"TUREEN_{name.upper()}": why for name, why in REMOVED.items()}
    found = [f"{name} ({why})" for name, why in variables.items() if name in given]
    return f"passed over, no longer a setting: {', '.join(found)}" if found else None
