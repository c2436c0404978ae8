"""Statements for those who look at a registration before its shard does: when HTTP checks it, and when it is
placed. Texts that differ in constants are parsed once (:mod:`engine.language.templates`).

Valid for one catalogue: a stream that comes or goes begins anew. Safe to use from several threads: one at a
time, tens of microseconds where a template serves.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.parameters import refused_at, written
from engine.language.query import Statement
from engine.language.templates import Meaning, Templates
from engine.limits import Limits
from engine.model.source import Derived, Stream
from tureen.errors import TureenError


class Parsed:
    """Meanings of texts against a catalogue."""

    def __init__(
        self,
        catalogue: Mapping[str, Stream | Derived],
        limits: Limits,
        functions: FunctionCatalogue = BUILT_IN,
    ) -> None:
        self.catalogue = catalogue
        self._lock = threading.Lock()
        self._templates = Templates(catalogue, limits, functions)

    def statement(self, sql: str, parameters: Any = None) -> Statement:
        """As :meth:`read`."""
        return self.read(sql, parameters)[1]

    def read(self, sql: str, parameters: Any = None) -> tuple[Meaning | None, Statement]:
        """A statement and, of a query, what to keep of it.

        Raises what :func:`engine.language.statements.parse` raises, ParametersRefused.
        """
        if isinstance(parameters, list):
            parameters = tuple(parameters)
        try:
            text = written(sql, parameters)
            with self._lock:
                return self._templates.read(text)
        except TureenError as refusal:
            raise refused_at(refusal, sql, parameters) from None
