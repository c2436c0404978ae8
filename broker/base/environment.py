"""Variables of the environment that are no settings: misspelt, empty, of a release before.

A broker that passed over a misspelt setting would run without it, and without its token be open to every
program of the machine. Names that are near a setting's, or speak of what protects the broker, are refused;
others are told, since they may be meant for another program.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from broker.base.settings import Settings
from topics.settings import ENVIRONMENT_PREFIX
from tureen.errors import SettingsError

PREFIX = "TUREEN_"
REMOVED = {"initial_hash_buckets": "state begins with the room that it needs"}
"""What is so instead, by name."""
OTHERS = frozenset({"URL", "CACHE_DIR", "EMBEDDED_KAFKA", "JDBC_PASSWORD"})
"""What clients, the embedded Kafka and Spark jobs read."""
PROTECTING = frozenset({"TOKEN", "TLS", "CERTIFICATE", "KEY", "PASSWORD", "SECRET", "AUTH"})
"""Words of names without which a broker may stand open."""
NOT_EMPTY = (
    "SERVICE_ID",
    "DATA_DIR",
    "HTTP_TOKEN",
    "HTTP_READ_TOKEN",
    "HTTP_TLS_CERTIFICATE",
    "HTTP_TLS_KEY",
)
"""Where these are empty, a default that was not meant would be taken; all others then count as not set."""
NEAR = 0.8
"""Names as alike as this (:func:`difflib.get_close_matches`) are one and the same, misspelt."""


def check(environment: Mapping[str, str]) -> None:
    """Raise SettingsError for a variable that is a setting's, misspelt, or empty where that is a mistake."""
    given = {name.upper(): value for name, value in environment.items()}
    for name in NOT_EMPTY:
        if given.get(PREFIX + name) == "":
            raise SettingsError(
                f"{PREFIX}{name} is empty", hint="give it a value, or unset it for the default"
            )
    for name in _unknown(environment):
        near = _nearest(name)
        if near is not None or not PROTECTING.isdisjoint(name.split("_")):
            meant = "no setting is like it." if near is None else f"did you mean {PREFIX}{near}?"
            raise SettingsError(
                f"{PREFIX}{name} is not a setting",
                hint=f"{meant} Correct it or unset it; docs/operations.md has all settings",
            )


def warning(environment: Mapping[str, str]) -> str | None:
    """What is said about variables that have no effect; None: all have. After :func:`check`."""
    given = {name.upper() for name in environment}
    variables = {f"{PREFIX}{name.upper()}": why for name, why in REMOVED.items()}
    found = [f"no longer a setting: {name} ({why})" for name, why in variables.items() if name in given]
    found += [f"not a setting: {PREFIX}{name}" for name in _unknown(environment)]
    return f"passed over, {'; '.join(found)}" if found else None


def _unknown(environment: Mapping[str, str]) -> Iterator[str]:
    """The names that are nobody's, without the prefix."""
    known = {name.upper() for name in (*Settings.model_fields, *REMOVED)} | OTHERS
    for name in environment:
        is_kafka = name.startswith(ENVIRONMENT_PREFIX)
        if name.upper().startswith(PREFIX) and not is_kafka and name[len(PREFIX) :].upper() not in known:
            yield name[len(PREFIX) :].upper()


def _nearest(name: str) -> str | None:
    if name.startswith("KAFKA_"):
        return f"KAFKA__{name.removeprefix('KAFKA_').lstrip('_')}"
    settings = [field.upper() for field in Settings.model_fields]
    return next(iter(difflib.get_close_matches(name, settings, n=1, cutoff=NEAR)), None)
