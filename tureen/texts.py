"""What a client registers: texts, built texts, and templates with their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tureen.builder import Select
from tureen.errors import KafkaUnavailable
from tureen.period import Period, filled_period_of, period_of
from tureen.protocol import Handle, new_handle
from tureen.transport import Parameter, Publication


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders, and the parameters that fill them: one query of many that differ in those.

    >>> Template("SELECT * FROM flights WHERE carrier = ?", ["AA"])
    Template(sql='SELECT * FROM flights WHERE carrier = ?', parameters=['AA'])
    """

    sql: str | Select
    parameters: Sequence[Parameter] | Mapping[str, Parameter]


Said = str | Select | Template
"""A query as a program says it."""


def text_of(sql: str | Select) -> str:
    """The text of what is a text or was built as one. Raises as :meth:`tureen.builder.Select.sql`."""
    return sql.sql() if isinstance(sql, Select) else sql


def published(
    said: Said, handle: str | None, options: Mapping[str, Any] | None, name: str | None = None
) -> Publication:
    """A query on its way to the broker, under this handle or a new one. name: what it is called, if so."""
    own = Handle(handle or new_handle())
    if isinstance(said, Template):
        return Publication(own, text_of(said.sql), options or {}, said.parameters, name)
    return Publication(own, text_of(said), options or {}, name=name)


def published_many(
    statements: Iterable[Said | tuple[Said, str]], options: Mapping[str, Any] | None
) -> list[Publication]:
    """Queries on their way, each alone or with its handle."""
    pairs = (one if isinstance(one, tuple) else (one, None) for one in statements)
    return [published(said, handle, options) for said, handle in pairs]


def said_of(
    sql: str | Select | None,
    template: str | Select | None,
    parameters: Sequence[Parameter] | Mapping[str, Parameter] | None,
) -> Said:
    """The one thing that was said. Raises TypeError for both of them, or none."""
    if template is not None and sql is None:
        return Template(template, parameters or ())
    if sql is None or template is not None or parameters is not None:
        raise TypeError("give a text, or template= and parameters=")
    return sql


def period_said(said: Said) -> tuple[Said, Period | None]:
    """What was said without the period that ends its text; None: it has none. Raises SyntaxRefused."""
    if isinstance(said, Template):
        found = filled_period_of(text_of(said.sql), said.parameters)
        return (said, None) if found is None else (Template(found[0], found[2]), found[1])
    plain = period_of(text_of(said))
    return (said, None) if plain is None else plain


@contextmanager
def unconfirmed(publication: Publication) -> Iterator[None]:
    """Have the error of a registration that Kafka did not confirm name its handle."""
    try:
        yield
    except KafkaUnavailable as error:
        error.handle = publication.handle
        raise
