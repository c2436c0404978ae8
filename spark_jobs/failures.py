"""What Spark raises, as an error of ours: told apart by classes and error conditions, never by text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_jobs.errors import InputMissing, InputUnreadable, PathNotWritable, SparkError
from tureen.errors import KafkaUnavailable, TopicMissing

_KAFKA = "org.apache.kafka.common.errors."
_KAFKA_SILENT = {
    f"{_KAFKA}{name}" for name in ("TimeoutException", "DisconnectException", "NetworkException")
}
_TOPIC_GONE = f"{_KAFKA}UnknownTopicOrPartitionException"
_CHAIN_MAX = 20


@contextmanager
def reading(paths: tuple[str, ...]) -> Iterator[None]:
    """Around what reads files. Raises InputMissing, InputUnreadable."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, PySparkException) and error.getCondition() == "PATH_NOT_FOUND":
            parameters = error.getMessageParameters() or {}
            raise InputMissing(parameters.get("path", ", ".join(paths))) from error
        hint = "is --format what the files are? CSV files must all have the same header"
        raise InputUnreadable(paths, _root_text(error), hint=hint) from error


@contextmanager
def writing_files(path: str) -> Iterator[None]:
    """Around a write of files. Raises PathNotWritable."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise PathNotWritable(
            path, _root_text(error), hint="is there space, and the right to write?"
        ) from error


@contextmanager
def writing_topic(topic: str) -> Iterator[None]:
    """Around a write to Kafka. Raises KafkaUnavailable, TopicMissing, SparkError."""
    hint = f"records before that stand on {topic}; run again on an empty topic, or on what is left to send"
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        classes = {name for name, _ in _chain(error)}
        if _TOPIC_GONE in classes:
            raise TopicMissing(topic, hint=hint) from error
        if classes & _KAFKA_SILENT:
            raise KafkaUnavailable(f"Kafka stopped answering while {topic} was written", hint=hint) from error
        raise SparkError(f"{topic} could not be written: {_root_text(error)}", hint=hint) from error


def _first_line(error: BaseException) -> str:
    """The first line of what an error says, without Spark's tags."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _java(error: BaseException) -> Any:
    """The Java exception behind a Python one, None where there is none."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None)


def _chain(error: BaseException) -> Iterator[tuple[str, str]]:
    """Class and text of a Java exception and its causes, outermost first."""
    cause = _java(error)
    for _ in range(_CHAIN_MAX):
        if cause is None:
            return
        yield cause.getClass().getName(), cause.getMessage() or ""
        cause = cause.getCause()


def _root_text(error: BaseException) -> str:
    """What the innermost cause says, in one line."""
    chain = list(_chain(error))
    if not chain:
        return _first_line(error)
    name, text = chain[-1]
    return f"{name.rsplit('.', 1)[-1]}: {(text.splitlines() or [''])[0]}"
