"""The exceptions of PEP 249, and which of them each error of a broker is.

The error of :mod:`tureen.errors` is the cause of the one that is raised, with its line, column and hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tureen import errors


class Warning(Exception):  # noqa: A001
    """Never raised; PEP 249 asks for it."""


class Error(Exception):
    """The root. ``code`` is that of the error behind it, None where this module refuses by itself."""

    code: str | None = None


class InterfaceError(Error):
    """A call that this interface cannot take: of a closed cursor, or rows where there are none."""


class DatabaseError(Error):
    """Whatever the broker refuses or fails with; the root of the rest."""


class DataError(DatabaseError):
    """A value out of its range."""


class OperationalError(DatabaseError):
    """The broker or Kafka cannot be reached, or a limit was reached."""


class IntegrityError(DatabaseError):
    """What is defined already is defined otherwise."""


class InternalError(DatabaseError):
    """A defect of the broker."""


class ProgrammingError(DatabaseError):
    """A text that is refused, a name that does not exist, parameters that do not fit."""


class NotSupportedError(DatabaseError):
    """Understood, but not supported."""


_KINDS: tuple[tuple[type[errors.TureenError], type[DatabaseError]], ...] = (
    (errors.NotSupported, NotSupportedError),
    (errors.QueryError, ProgrammingError),
    (errors.UnknownQuery, ProgrammingError),
    (errors.OptionRefused, ProgrammingError),
    (errors.SourceConflict, IntegrityError),
    (errors.HandleInUse, IntegrityError),
    (errors.NameInUse, IntegrityError),
    (errors.InstantOutOfRange, DataError),
    (errors.StepOutOfOrder, InternalError),
    (errors.StoreCorrupt, InternalError),
    (errors.LimitExceeded, OperationalError),
    (errors.QueryPaused, OperationalError),
    (errors.BrokerUnavailable, OperationalError),
    (errors.KafkaUnavailable, OperationalError),
    (errors.TopicMissing, OperationalError),
    (errors.TopicPolicyMismatch, OperationalError),
    (errors.StoreError, OperationalError),
    (errors.SettingsError, OperationalError),
)
"""The first that fits."""


def error_for(error: errors.TureenError) -> DatabaseError:
    """The exception of PEP 249 that says the same.

    >>> error_for(errors.UnknownColumn("prize"))
    ProgrammingError("there is no column named 'prize'")
    """
    kind = next((given for known, given in _KINDS if isinstance(error, known)), DatabaseError)
    raised = kind(str(error))
    raised.code = error.code
    return raised


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the client within come out as those of PEP 249."""
    try:
        yield
    except errors.TureenError as error:
        raise error_for(error) from error
