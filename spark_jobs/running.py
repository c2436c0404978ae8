"""What every job's command has: the common options, and one run with its signals, output and exit code.

A command takes :func:`job_options` below its own options and hands a function to :func:`run_job`, which
checks the job's settings before Spark is started and returns what is to be done with the session. Nothing
here imports PySpark before that.

The first SIGINT or SIGTERM asks a streaming job to stop, which finishes its micro-batch, and ends a batch
job; the second ends either at once. Exit codes: 0 done, or stopped as asked; 1 refused, failed, or a batch
job that was stopped; 2 wrong usage; 3 Kafka can't be reached.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
from rich.console import Console
from rich.text import Text

from spark_jobs.errors import JobStopped, SparkError
from spark_jobs.settings import SparkSettings, StreamSettings
from topics.embedded import HOST, PORT_DEFAULT
from topics.settings import kafka_settings
from tureen.errors import KafkaUnavailable, TureenError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = 1
UNREACHABLE = 3
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""``context_settings`` of every job's command."""

Command = TypeVar("Command", bound=Callable[..., Any])


class Report(Protocol):
    """What a run did: for ``--json``, and in words, a line each."""

    def as_dict(self) -> dict[str, object]: ...

    def lines(self) -> Iterable[str]: ...


class Stop:
    """Whether the run was asked to end. ``ended_by``: the signal that ended it where it stood."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.ended_by: str | None = None

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait so long, or until it is asked for; whether it is."""
        return self._asked.wait(timeout_s)


Run = Callable[["SparkSession", Stop], Report]


@dataclass(frozen=True, slots=True)
class Given:
    """The common options of a command line.

    kafka: librdkafka's names, with the environment's. stream: None where the command is no streaming one, or
    no ``--checkpoint`` was given.
    """

    kafka: Mapping[str, str] = field(repr=False)
    service_id: str
    spark: SparkSettings
    as_json: bool
    stream: StreamSettings | None = None


def pairs(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """A click callback: ``KEY=VALUE`` texts as a mapping."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param=parameter)
        found[key.strip()] = value.strip()
    return found


_COMMON = (
    click.option(
        "--service-id",
        envvar="TUREEN_SERVICE_ID",
        default="tureen",
        show_default=True,
        help="Prefix of the broker's topics.  [env: TUREEN_SERVICE_ID]",
    ),
    click.option(
        "--kafka",
        multiple=True,
        metavar="KEY=VALUE",
        callback=pairs,
        help=f"A Kafka setting.  [default: bootstrap.servers={HOST}:{PORT_DEFAULT}; env: TUREEN_KAFKA__...]",
    ),
    click.option("--master", default="local[*]", show_default=True, help="Spark's; spark-submit's own wins."),
    click.option("--memory", default="1g", show_default=True, help="Of the driver."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", callback=pairs, help="A Spark setting."),
    click.option(
        "--package",
        "packages",
        multiple=True,
        metavar="GROUP:ARTIFACT:VERSION",
        help="A further jar, such as a JDBC driver.",
    ),
    click.option(
        "--repository",
        "repositories",
        multiple=True,
        metavar="URL",
        help="A repository in addition to Maven Central.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)
_STREAM = (
    click.option(
        "--checkpoint",
        metavar="DIRECTORY",
        help="Directory for the state of the job, from which the next run continues.",
    ),
    click.option("--once", is_flag=True, help="Process what is there, then end."),
    click.option(
        "--every",
        "every_s",
        type=float,
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="From the start of one micro-batch to the next.",
    ),
    click.option(
        "--give-up-after",
        "give_up_after_s",
        type=float,
        default=86_400.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for a Kafka that is unavailable.",
    ),
)
_GAP = (
    click.option(
        "--accept-gap", is_flag=True, help="Continue if records are gone from Kafka that were never read."
    ),
)


def _taken(of: type[SparkSettings | StreamSettings], options: dict[str, Any]) -> dict[str, Any]:
    """Take the options out that are the settings of a class, by the names of its fields."""
    return {one.name: options.pop(one.name) for one in fields(of) if one.name in options}


def job_options(*, streaming: bool = False, reads_kafka: bool = False) -> Callable[[Command], Command]:
    """The common options, handed to the command as ``given``: :class:`Given`.

    streaming: with those of a stream. reads_kafka: its input are topics. Of wrong settings the command is
    told when it runs: see :func:`run_job`.
    """
    options = (*(_STREAM if streaming else ()), *(_GAP if reads_kafka else ()), *_COMMON)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*args: Any, kafka: dict[str, str], service_id: str, as_json: bool, **others: Any) -> Any:
            stream = _taken(StreamSettings, others)
            if stream.get("checkpoint") is None and (stream.get("once") or stream.get("accept_gap")):
                raise click.UsageError("--once and --accept-gap go with --checkpoint DIRECTORY.")
            with _told(as_json):
                given = Given(
                    {"bootstrap.servers": f"{HOST}:{PORT_DEFAULT}"}
                    | kafka_settings(kafka, environ=os.environ),
                    service_id,
                    SparkSettings(**_taken(SparkSettings, others)),
                    as_json,
                    None if stream.get("checkpoint") is None else StreamSettings(**stream),
                )
            return command(*args, given=given, **others)

        for option in reversed(options):
            called = option(called)
        return called  # type: ignore[return-value]

    return decorate


def run_job(
    name: str,
    given: Given,
    prepare: Callable[[], Run],
    *,
    streaming: bool = False,
    tells: bool | None = None,
) -> None:
    """One run: prepare, start Spark, run, report, stop Spark. Ends the process where it fails.

    prepare: imports the job, makes its settings, and returns the run; what it raises is told before Spark
    is started. streaming: the run heeds ``Stop``; else a signal ends it where it stands. tells: the run says
    itself how far it is, as streaming ones do unless told; for others it is said here.
    """
    with _told(given.as_json):
        try:
            run = prepare()
            from py4j.protocol import Py4JNetworkError

            from spark_jobs.cluster import check_executors
            from spark_jobs.session import start
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("pyspark", "py4j"):
                raise
            raise TureenError("PySpark is not installed", hint="pip install '.[server,spark]'") from missing
        # It logs every exception of a micro-batch with its traceback; what it means is told in the end.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        stop = Stop()
        with signals(stop, heeded=False), _stopped_within(stop):
            session = start(f"tureen {name}", given.spark, progress=not streaming)
            try:
                if streaming:  # these alone run Python on executors
                    with (
                        signals(stop, heeded=False),
                        _stopped_within(stop),
                        _said(name, session, tells=False),
                    ):
                        check_executors(session)
                # Signals again: PySpark has set one of its own.
                with (
                    signals(stop, heeded=streaming),
                    _stopped_within(stop),
                    _said(name, session, tells=streaming if tells is None else tells),
                ):
                    report = run(session, stop)
            except JobStopped:
                with _jvm_may_be_gone():
                    session.sparkContext.cancelAllJobs()
                raise
            except (ConnectionError, Py4JNetworkError) as error:
                raise SparkError(
                    "Spark's JVM has ended", hint="was it killed, or short of memory (--memory)?"
                ) from error
            finally:
                with _jvm_may_be_gone():
                    session.stop()
    _show(report, given.as_json)


def _show(report: Report, as_json: bool) -> None:
    for line in [json.dumps(report.as_dict())] if as_json else report.lines():
        click.echo(line)


@contextmanager
def _said(name: str, session: SparkSession, *, tells: bool) -> Iterator[None]:
    """How far a run is that does not say it itself."""
    if tells:
        yield
        return
    from spark_jobs.progress import tasks, told_meanwhile

    with told_meanwhile(name, lambda: tasks(session)):
        yield


@contextmanager
def _stopped_within(stop: Stop) -> Iterator[None]:
    """A JobStopped raised while Py4J waits for the JVM comes out as Py4J's error: made one again."""
    from py4j.protocol import Py4JError

    def told(_: logging.LogRecord) -> bool:
        return stop.ended_by is None

    logging.getLogger().addFilter(told)  # Py4J tells what interrupted it through the root logger, too
    try:
        yield
    except Py4JError as error:
        if stop.ended_by is None:
            raise
        raise JobStopped(stop.ended_by) from error
    finally:
        logging.getLogger().removeFilter(told)


@contextmanager
def _jvm_may_be_gone() -> Iterator[None]:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):
        yield


@contextmanager
def _told(as_json: bool) -> Iterator[None]:
    """An error becomes text or JSON, and the exit code."""
    try:
        yield
    except TureenError as error:
        if as_json:
            click.echo(json.dumps({"error": error.as_dict()}))
        else:
            console = Console(stderr=True, highlight=False, soft_wrap=True)
            console.print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(UNREACHABLE if isinstance(error, KafkaUnavailable) else FAILED)


@contextmanager
def signals(stop: Stop, *, heeded: bool) -> Iterator[None]:
    """Within, SIGINT and SIGTERM ask to stop; not heeded, or the second time, they end the run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def received(number: int, _: Any) -> None:
        again = stop.asked
        stop.ask()
        if again or not heeded:
            stop.ended_by = signal.Signals(number).name
            raise JobStopped(stop.ended_by)

    before = {number: signal.signal(number, received) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
