"""A table of a database as the input, and its options; importing this needs no PySpark."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar

import click

from tureen.errors import SettingsError

PASSWORD = "TUREEN_JDBC_PASSWORD"
"""The environment's name for it: a command line can be read by others."""
PARTITIONS_MAX = 1_000

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class JdbcSettings:
    """Checked when it is made. Raises SettingsError.

    table, query: one of them. driver: the class, where the URL does not tell it. partition_column: the rows
    are read in so many ``partitions`` at a time, cut evenly between ``lower`` and ``upper``; rows outside
    these are read too. increasing: column by which a stream knows what it has not read yet.
    """

    url: str = field(repr=False)
    table: str | None = None
    query: str | None = None
    driver: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    partition_column: str | None = None
    lower: str | None = None
    upper: str | None = None
    partitions: int = 1
    increasing: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith("jdbc:"):
            raise SettingsError("the URL does not begin with jdbc:", hint="such as jdbc:postgresql://host/db")
        if re.search(r"(password|pwd)\s*=", self.url, re.IGNORECASE):
            raise SettingsError(
                "the URL contains a password", hint=f"give it as {PASSWORD} in the environment"
            )
        if (self.table is None) == (self.query is None):
            raise SettingsError("either --table or --query is needed")
        bounds = (self.partition_column, self.lower, self.upper)
        if any(bounds) != all(bounds):
            raise SettingsError("--partition-column, --lower and --upper go together")
        if (self.partitions > 1) != (self.partition_column is not None):
            raise SettingsError("--partitions of more than 1 and --partition-column go together")
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise SettingsError(f"{self.partitions:,} partitions are not within 1 and {PARTITIONS_MAX:,}")

    @property
    def name(self) -> str:
        """What is read, in a few words."""
        return self.table if self.table is not None else "the query"


def jdbc_options(command: Command) -> Command:
    """The options of a database, handed to the command as ``jdbc``: None without ``--url``."""
    options = (
        click.option("--url", metavar="jdbc:...", help="Of the database."),
        click.option("--table", metavar="NAME", help="To read from it."),
        click.option("--query", metavar="SELECT ...", help="To read in place of a table, in its own SQL."),
        click.option("--driver", metavar="CLASS", help="Of its jar; see --package."),
        click.option("--user", metavar="NAME", help=f"Its password: {PASSWORD} in the environment."),
        click.option(
            "--partition-column", metavar="COLUMN", help="Read parts at a time, cut by this column."
        ),
        click.option("--lower", metavar="VALUE", help="Where the first cut is."),
        click.option("--upper", metavar="VALUE", help="Where the last cut is."),
        click.option("--partitions", default=1, show_default=True, metavar="N", help="How many parts."),
        click.option(
            "--increasing", metavar="COLUMN", help="With --stream: rows beyond the largest value read."
        ),
    )

    @wraps(command)
    def called(*args: Any, url: str | None, partitions: int, **options: Any) -> Any:
        names = [one.name for one in fields(JdbcSettings) if one.name in options]
        given = {name: options.pop(name) for name in names}
        if url is None and (any(given.values()) or partitions != 1):
            raise click.UsageError("A database is named by --url jdbc:...")
        try:
            password = os.environ.get(PASSWORD)
            jdbc = url and JdbcSettings(url, password=password, partitions=partitions, **given)
        except SettingsError as error:
            raise click.UsageError(str(error)) from error
        return command(*args, jdbc=jdbc or None, **options)

    for option in reversed(options):
        called = option(called)
    return called  # type: ignore[return-value]
