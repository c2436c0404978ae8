"""Kafka settings: librdkafka's own names and values, passed through untouched.

They come from a properties file, from the environment, from a mapping; the later wins. In the environment a
name follows ``TUREEN_KAFKA__``, as it is or with ``_`` for ``.`` and in capitals::

    TUREEN_KAFKA__BOOTSTRAP_SERVERS=kafka:9092   TUREEN_KAFKA__security.protocol=SSL
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tureen.errors import SettingsError

ENVIRONMENT_PREFIX = "TUREEN_KAFKA__"

KafkaSettings = Mapping[str, str | int | float | bool]


def kafka_settings(
    given: KafkaSettings | None = None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The union of file, environment and mapping. Raises SettingsError for a file that can't be read."""
    settings = {} if file is None else _properties(file)
    for name, value in (os.environ if environ is None else environ).items():
        if name.startswith(ENVIRONMENT_PREFIX):
            setting = name.removeprefix(ENVIRONMENT_PREFIX)
            settings[setting.lower().replace("_", ".") if setting.isupper() else setting] = value
    for name, given_value in (given or {}).items():
        settings[name] = str(given_value).lower() if isinstance(given_value, bool) else str(given_value)
    return settings


def _properties(file: Path) -> dict[str, str]:
    """``name=value`` lines; ``#`` and ``!`` begin a comment."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the Kafka settings in {file} cannot be read: {error}") from error
    settings = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip():
            raise SettingsError(
                f"{file} is not a properties file",
                line=number,
                column=1,
                hint="write name=value on each line",
            )
        settings[name.strip()] = value.strip()
    return settings
