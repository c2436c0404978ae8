"""Statements for those who look at a registration before its shard does: when HTTP checks it, and when it is
placed. Texts that differ in constants are parsed once (:mod:`engine.language.templates`).

Valid for one catalogue: a stream that comes or goes begins anew. Safe to use from several threads: one at a
time, tens of microseconds where a template serves. What was found for a text is kept for a while, since who
places a registration asks again what HTTP asked before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from engine.language.bind.environment import NO_SUMMARIES, Summaries
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.parameters import refused_at, written
from engine.language.query import Statement
from engine.language.statements import parse
from engine.language.templates import Read, Templates
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from engine.model.step import Parameters
from topics.wording import Values
from tureen.errors import TureenError

LONG_TEXT = 4_096
"""Characters of a text up to which it takes little to read."""
READS_MAX = 2_048
"""Texts whose meaning is kept for the next who asks: as many as are between HTTP and a shard at a time."""


class Parsed:
    """Meanings of texts against a catalogue."""

    def __init__(
        self,
        catalogue: Mapping[str, Stream | Derived],
        limits: Limits,
        functions: FunctionCatalogue = BUILT_IN,
        summaries: Summaries = NO_SUMMARIES,
    ) -> None:
        self.catalogue = catalogue
        self.summaries = summaries
        self._lock = threading.Lock()
        self._limits, self._functions = limits, functions
        self._templates = Templates(catalogue, limits, functions, summaries)
        self._reads: OrderedDict[str, Read] = OrderedDict()

    def statement(self, sql: str, parameters: Values | Parameters | None = None) -> Statement:
        """The tree of a text. A long one keeps nobody waiting, and is not kept. Raises as :meth:`read`."""
        if len(sql) <= LONG_TEXT:
            return self.read(sql, parameters).statement
        held = tuple(parameters) if isinstance(parameters, list) else parameters
        try:
            text = written(sql, held)
            return parse(text, self.catalogue, self._limits, None, self._functions, self.summaries)
        except TureenError as refusal:
            raise refused_at(refusal, sql, held) from None

    def read(self, sql: str, parameters: Values | Parameters | None = None) -> Read:
        """What a text means.

        Raises what :func:`engine.language.statements.parse` raises, ParametersRefused.
        """
        held = tuple(parameters) if isinstance(parameters, list) else parameters
        try:
            text = written(sql, held)
            with self._lock:
                read = self._reads.pop(text, None) or self._templates.read(text)
                self._reads[text] = read
                if len(self._reads) > READS_MAX:
                    self._reads.popitem(last=False)
                return read
        except TureenError as refusal:
            raise refused_at(refusal, sql, held) from None
