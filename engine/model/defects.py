"""Defects: unexpected exceptions in the own work of queries, which end these queries alone.

What is a query's own: its plan and its way through the graph, what is kept of its answer, its evaluation.
What all share (admission of rows, their stores, the matching of predicates) is none of it, and fails as it
is.

A defect becomes an :class:`tureen.errors.InternalError`. The queries that it is of are noted in
:class:`Defects`. They stand until a step removes them, which whoever makes steps does at once; so a replay
comes to the same queries whether the defect shows again or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from types import TracebackType

from tureen.errors import InternalError, TureenError

INCIDENT_BYTES = 6
TOLD_FRAMES = 3
"""How many of the innermost frames tell one incident from others."""
WITHOUT_VALUES = (
    AssertionError,
    AttributeError,
    IndexError,
    MemoryError,
    NameError,
    RecursionError,
    TypeError,
    ZeroDivisionError,
)
"""Exceptions whose texts have no values of rows in them."""


def refusal_of(error: Exception) -> TureenError:
    """Why something could not be told: the error itself, where it is one of ours."""
    return error if isinstance(error, TureenError) else internal(error)


def internal(defect: Exception) -> InternalError:
    """What users are told of a defect, and what the log is."""
    frames = list(_frames(defect.__traceback__))
    kind = type(defect).__name__
    told = "\n".join([kind, *frames[-TOLD_FRAMES:]])
    incident = blake2b(told.encode(), digest_size=INCIDENT_BYTES).hexdigest()
    text = f"{kind}: {defect}" if isinstance(defect, WITHOUT_VALUES) and str(defect) else kind
    return InternalError(incident, "\n".join([*frames, text]))


def _frames(trace: TracebackType | None) -> Iterator[str]:
    """The places that an exception came through, the innermost last."""
    while trace is not None:
        code = trace.tb_frame.f_code
        yield f"{code.co_filename}:{trace.tb_lineno} in {code.co_qualname}"
        trace = trace.tb_next


class Defects:
    """The queries of one engine whose work failed, and how it failed, until they are removed."""

    def __init__(self) -> None:
        self._errors: dict[str, InternalError] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._errors

    def note(self, query_ids: Iterable[str], defect: Exception) -> None:
        """The work of these failed; of one that failed before, the first defect counts."""
        error = defect if isinstance(defect, InternalError) else internal(defect)
        for query_id in query_ids:
            self._errors.setdefault(query_id, error)

    @contextmanager
    def of(self, *query_ids: str) -> Iterator[None]:
        """What fails within is the work of these queries; it ends there."""
        try:
            yield
        except Exception as defect:  # noqa: BLE001  (whatever it is, it is theirs)
            self.note(query_ids, defect)

    def errors(self) -> Mapping[str, InternalError]:
        """By query id, as they stand."""
        return dict(self._errors)

    def gone(self, query_id: str) -> None:
        """A query was removed."""
        self._errors.pop(query_id, None)
