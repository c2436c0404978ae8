"""Options that commands share, and the values that they are handed to a command as."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tureen.protocol import TopicNames
from tureen.statements import written_to

if TYPE_CHECKING:
    from tureen.client import Client, Query

Command = TypeVar("Command", bound=Callable[..., Any])

KAFKA_BOOTSTRAP_DEFAULT = "127.0.0.1:19092"
"""Where `tureen up` listens."""

KAFKA_PREFIX = "TUREEN_KAFKA__"


def _note_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.meta["tureen.json"] = value
    return value


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_note_json, is_eager=True, help="Print JSON."
)


@dataclass(frozen=True, slots=True)
class ByTopic:
    """How the options of a command lead to a service's topics.

    >>> ByTopic(("bootstrap.servers=a:1", "sasl.password=x"), "flights").flags
    '--by-topic --kafka bootstrap.servers=a:1 --service-id flights'
    """

    kafka: Sequence[str]
    service_id: str

    @property
    def settings(self) -> dict[str, str]:
        """Kafka's, as :func:`kafka_settings` has them. Raises BadParameter."""
        return kafka_settings(self.kafka)

    @property
    def status(self) -> str:
        """The topic that tells what became of queries."""
        return TopicNames(self.service_id).status

    @property
    def flags(self) -> str:
        """To be written again to come to the same service; nothing that might be secret, nor what the
        environment has."""
        told = ["--by-topic"]
        told += [f"--kafka {shlex.quote(one)}" for one in self.kafka if one.startswith("bootstrap.servers=")]
        if self.service_id != os.environ.get("TUREEN_SERVICE_ID", "tureen"):
            told.append(f"--service-id {shlex.quote(self.service_id)}")
        return " ".join(told)

    def written_to(self, query: Query) -> str | None:
        """The topic of a query's changes, as it was told or as its text says; None without EMIT CHANGES."""
        if output := query.facts.get("output"):
            return str(output["topic"])
        into = written_to(query.sql or "")
        if into is None:
            return None
        names = TopicNames(self.service_id)
        return names.results_into(into) if into else f"{names.results} or {names.results_log}"


@dataclass(frozen=True, slots=True)
class Broker:
    """Which broker a command speaks to, and whether it prints JSON: as :func:`broker_options` say."""

    url: str
    token: str | None
    as_json: bool

    def client(self, topics: ByTopic | None = None, timeout: float = 30.0) -> Client:
        """The client that asks it, or goes past it by topics alone."""
        from tureen.client import connect

        if topics is None:
            return connect(self.url, token=self.token, timeout=timeout)
        return connect(self.url, topics.settings, topics.service_id, self.token, timeout=timeout)


def broker_options(command: Command) -> Command:
    """``--url``, ``--token``, ``--json``, handed to the command as ``broker``: :class:`Broker`."""

    @wraps(command)
    def called(*args: Any, url: str, token: str | None, as_json: bool, **others: Any) -> Any:
        return command(*args, broker=Broker(url, token, as_json), **others)

    options = json_option(called)
    options = click.option(
        "--token",
        envvar="TUREEN_HTTP_TOKEN",
        help="Bearer token; better in the environment, since every user of the machine can see arguments.  "
        "[env: TUREEN_HTTP_TOKEN]",
    )(options)
    return click.option(  # type: ignore[return-value]
        "--url",
        envvar="TUREEN_URL",
        default="http://127.0.0.1:8080",
        show_default=True,
        help="The broker.  [env: TUREEN_URL]",
    )(options)


def kafka_options(command: Command) -> Command:
    """``--by-topic``, ``--kafka``, ``--service-id``: past HTTP, by topics alone. Handed to the command as
    ``topics``: :class:`ByTopic`, or None.
    """

    @wraps(command)
    def called(*args: Any, by_topic: bool, kafka: tuple[str, ...], service_id: str, **others: Any) -> Any:
        topics = ByTopic(kafka, service_id) if by_topic or kafka else None
        return command(*args, topics=topics, **others)

    options = click.option(
        "--service-id",
        envvar="TUREEN_SERVICE_ID",
        default="tureen",
        show_default=True,
        help="Prefix of the broker's topics, with --by-topic.",
    )(called)
    options = click.option(
        "--kafka",
        "kafka",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"A Kafka setting, with --by-topic.   [default: bootstrap.servers={KAFKA_BOOTSTRAP_DEFAULT}; "
        "env: TUREEN_KAFKA__BOOTSTRAP_SERVERS, ...]",
    )(options)
    return click.option("--by-topic", is_flag=True, help="Use Kafka's topics only, no HTTP.")(options)  # type: ignore[return-value]


def kafka_only_options(command: Command) -> Command:
    """``--kafka``, of commands that speak to Kafka and to nothing else."""
    return click.option(
        "--kafka",
        "kafka",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"A Kafka setting.  [default: bootstrap.servers={KAFKA_BOOTSTRAP_DEFAULT}; "
        "env: TUREEN_KAFKA__BOOTSTRAP_SERVERS, ...]",
    )(command)


def kafka_settings(pairs: Sequence[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Kafka settings of the environment and of ``--kafka``, which wins.

    >>> kafka_settings(["client.id=me"], {"TUREEN_KAFKA__BOOTSTRAP_SERVERS": "a:1"})
    {'bootstrap.servers': 'a:1', 'client.id': 'me'}
    """
    settings = {"bootstrap.servers": KAFKA_BOOTSTRAP_DEFAULT}
    for name, value in environment.items():
        if name.upper().startswith(KAFKA_PREFIX):
            settings[name[len(KAFKA_PREFIX) :].lower().replace("_", ".")] = value
    return settings | pairs_of(pairs, "--kafka")


def pairs_of(pairs: Sequence[str], said: str) -> dict[str, str]:
    """``KEY=VALUE`` of an option that comes several times, each key once. said: its name.

    >>> pairs_of(["strategy=upa", "partitions = 20"], "--option")
    {'strategy': 'upa', 'partitions': '20'}
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=said)
        if key.strip() in found:
            raise click.BadParameter(f"{key.strip()} is given twice", param_hint=said)
        found[key.strip()] = value.strip()
    return found
