"""What SHOW and current_setting tell, and SET changes: settings of a connection, none of which changes an
answer but ``statement_timeout``, ``default_transaction_read_only`` and ``extra_float_digits``.
"""

from __future__ import annotations

import re

from tureen.errors import TureenError

SERVER_VERSION = "15.0"
"""Whose catalogues and functions clients are to expect."""

SETTINGS = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "session_authorization": "tureen",
    "search_path": "public",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "default_transaction_read_only": "off",
    "in_hot_standby": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "client_min_messages": "notice",
    "wal_level": "replica",
    "jit": "off",
    "row_security": "off",
}
"""By name, in lower case: their first values."""
TOLD = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "is_superuser",
    "session_authorization",
    "in_hot_standby",
    "default_transaction_read_only",
)
"""Those that a client hears at the start."""
FIXED = (
    "server_version",
    "server_version_num",
    "server_encoding",
    "integer_datetimes",
    "max_identifier_length",
    "max_index_keys",
    "in_hot_standby",
    "wal_level",
    "is_superuser",
)
SETTINGS_MAX = 100
VALUE_CHARACTERS_MAX = 1_000

_DURATION = re.compile(r"(\d{1,12})\s*(us|ms|s|min|h|d)?")
_MS = {None: 1, "us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class UnknownSetting(TureenError):
    """There is no such setting, or it cannot have the value."""

    code = "unknown_setting"


class SessionSettings:
    """The settings of one connection: what differs from the first values."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}

    def get(self, name: str) -> str:
        """Raises UnknownSetting."""
        found = self._own.get(name.lower(), SETTINGS.get(name.lower()))
        if found is None:
            raise UnknownSetting(f'unrecognized configuration parameter "{name}"')
        return found

    def set(self, name: str, value: str) -> None:
        """Raises UnknownSetting. Settings of tools that are not known are kept as they are."""
        key = name.lower()
        if key in FIXED:
            raise UnknownSetting(f'parameter "{name}" cannot be changed')
        if len(value) > VALUE_CHARACTERS_MAX or (len(self._own) >= SETTINGS_MAX and key not in self._own):
            raise UnknownSetting(f'parameter "{name}" is too long, or one too many')
        if key == "client_encoding" and value.lower().replace("-", "").strip("'") not in ("utf8", "unicode"):
            raise UnknownSetting("texts are UTF8 here", hint="SET client_encoding = 'UTF8'")
        if key == "statement_timeout":
            value = str(duration_ms(value))
        if key == "extra_float_digits" and not re.fullmatch(r"[0-3]|-\d|-1[0-5]", value.strip()):
            raise UnknownSetting(f"{value!r} is no value of extra_float_digits", hint="-15 to 3")
        self._own[key] = value

    def reset(self, name: str | None) -> None:
        """To the first value; None: all."""
        if name is None:
            self._own.clear()
        else:
            self._own.pop(name.lower(), None)

    @property
    def timeout_ms(self) -> int | None:
        """How long a statement may take; None: as long as the broker lets it."""
        return int(self.get("statement_timeout")) or None

    @property
    def float_digits(self) -> int | None:
        """How many digits a DOUBLE has in text; None: the shortest that mean it."""
        extra = int(self.get("extra_float_digits"))
        return None if extra > 0 else max(1, 15 + extra)

    @property
    def reads_only(self) -> bool:
        """Whether transactions only read, unless they say otherwise."""
        return self.get("default_transaction_read_only").lower() in ("on", "true", "1", "yes")

    def all(self) -> dict[str, str]:
        return SETTINGS | self._own


def duration_ms(value: str) -> int:
    """A length of time as settings have it: 500ms, 5s, 1min; ms without a unit. Raises UnknownSetting."""
    found = _DURATION.fullmatch(value.strip().lower())
    if found is None:
        raise UnknownSetting(f"{value!r} is no duration", hint="write it as '500ms', '5s' or '1min'")
    return round(int(found[1]) * _MS[found[2]])
