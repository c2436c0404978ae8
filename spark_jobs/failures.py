"""What Spark raises, as an error of ours: told apart by classes and error conditions, never by text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PythonException

from spark_jobs.errors import (
    CheckpointMismatch,
    InputMissing,
    InputUnreadable,
    PathNotWritable,
    RecordsLost,
    SparkError,
)
from tureen.errors import KafkaUnavailable, TopicMissing, TureenError

_KAFKA = "org.apache.kafka.common.errors."
_KAFKA_SILENT = {
    f"{_KAFKA}{name}" for name in ("TimeoutException", "DisconnectException", "NetworkException")
}
_POLL_SILENT = "java.util.concurrent.TimeoutException"
"""The connector's, where a reader of a task gets no records."""
_TOPIC_GONE = f"{_KAFKA}UnknownTopicOrPartitionException"
_DATA_LOSS = "KAFKA_DATA_LOSS."
_LOG_VERSION = "INVALID_LOG_VERSION."
_LOG_SHARED = "CONCURRENT_STREAM_LOG_UPDATE"
_FILES_REFUSED = {
    "java.io.FileNotFoundException",
    "java.nio.file.AccessDeniedException",
    "java.nio.file.FileSystemException",
    "java.nio.file.NotDirectoryException",
    "java.nio.file.NoSuchFileException",
    "org.apache.hadoop.fs.ParentNotDirectoryException",
    "org.apache.hadoop.fs.FSError",
    "org.apache.hadoop.security.AccessControlException",
}
_PYTHON = "org.apache.spark.api.python.PythonException"
"""What Python raised in an executor, its traceback as the message."""
_FRAMES = 3
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
        raise InputUnreadable(paths, root_text(error), hint=hint) from error


@contextmanager
def reading_table(name: str) -> Iterator[None]:
    """Around what asks a database. Raises InputUnreadable."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if "java.lang.ClassNotFoundException" in {found for found, _ in _chain(error)}:
            hint = "give its jar by --package GROUP:ARTIFACT:VERSION, or another --driver"
        else:
            hint = "are --url, --user, the password and the table right? a driver's jar is given by --package"
        raise InputUnreadable((name,), root_text(error), hint=hint) from error


@contextmanager
def writing_files(path: str) -> Iterator[None]:
    """Around a write of files. Raises PathNotWritable."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise PathNotWritable(
            path, root_text(error), hint="is there space, and the right to write?"
        ) from error


@contextmanager
def writing_topic(topic: str) -> Iterator[None]:
    """Around a write to Kafka. Raises KafkaUnavailable, TopicMissing, SparkError."""
    hint = f"earlier records are on {topic}; run again on an empty topic, or with the remaining records"
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        classes = {name for name, _ in _chain(error)}
        if _TOPIC_GONE in classes:
            raise TopicMissing(topic, hint=hint) from error
        if classes & _KAFKA_SILENT:
            raise KafkaUnavailable(f"Kafka stopped answering while {topic} was written", hint=hint) from error
        raise SparkError(f"{topic} could not be written: {root_text(error)}", hint=hint) from error


def stream_failure(error: Exception, checkpoint: str, topics: Sequence[str]) -> TureenError:
    """What ended a stream: RecordsLost, TopicMissing, KafkaUnavailable, CheckpointMismatch, PathNotWritable.

    SparkError for whatever is none of them. topics: those that the stream is about.
    """
    found = list(_causes(error))
    classes = {cause.name for cause in found}
    for cause in found:
        if cause.condition.startswith(_DATA_LOSS):
            lost = ", ".join(f"{name} {value}" for name, value in sorted(cause.parameters.items()))
            what = cause.condition.removeprefix(_DATA_LOSS).lower().replace("_", " ")
            return RecordsLost(
                [f"{what}: {lost}"],
                hint="retention was shorter than the job was away, or the topic was made anew; what is gone "
                "stays gone, --accept-gap goes on behind it",
            )
        if cause.condition == _LOG_SHARED:
            return CheckpointMismatch(
                checkpoint, "is used by another run at this moment", hint="one run at a time; stop the other"
            )
        if cause.condition.startswith(_LOG_VERSION):
            version = cause.parameters.get("version")
            return CheckpointMismatch(
                checkpoint,
                f"was written by another version of Spark (version {version} of its log)",
                hint="run that version, or start again with another --checkpoint",
            )
    if _TOPIC_GONE in classes:
        return TopicMissing(
            ", ".join(topics), hint="it was deleted or never existed; create it, or leave it out of the job"
        )
    if classes & {*_KAFKA_SILENT, _POLL_SILENT}:
        return KafkaUnavailable("Kafka stopped answering", hint="is it running?")
    if found and found[-1].in_log:
        return CheckpointMismatch(
            checkpoint, f"is damaged: {found[-1].text}", hint="start again with another --checkpoint"
        )
    if classes & _FILES_REFUSED:
        return PathNotWritable(checkpoint, root_text(error), hint="is there space, and the right to write?")
    return SparkError(f"the stream failed: {root_text(error)}")


def _python_text(text: str) -> str:
    """The first line of the exception in a text that has one traceback or several: it comes after the frames
    of the last traceback.
    """
    found, within = text.strip(), False
    for line in text.splitlines():
        if line.startswith("Traceback "):
            within = True
        elif within and line and not line[0].isspace():
            found, within = line, False
    return found


def _first_line(error: BaseException) -> str:
    """The first line of what an error says, without Spark's tags; of what Python raised, the last."""
    if isinstance(error, PythonException):
        return _python_text(str(error))
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _java(error: BaseException) -> Any:
    """The Java exception behind a Python one, None where there is none."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None)


@dataclass(frozen=True, slots=True)
class _Cause:
    """One Java exception. condition: Spark's name for what happened; in_log: a checkpoint's log raised it."""

    name: str
    text: str
    condition: str
    parameters: Mapping[str, str]
    in_log: bool


def _causes(error: BaseException) -> Iterator[_Cause]:
    """A Java exception and its causes, outermost first."""
    cause = _java(error)
    for _ in range(_CHAIN_MAX):
        if cause is None:
            return
        condition, parameters = _condition(cause)
        raised = cause.getStackTrace()
        top = [raised[place].getClassName() for place in range(min(len(raised), _FRAMES))]
        name, text = cause.getClass().getName(), cause.getMessage() or ""
        yield _Cause(
            name,
            _python_text(text) if name == _PYTHON else text.partition("\n")[0],
            condition,
            parameters,
            any(name.rstrip("$").endswith("Log") for name in top),
        )
        cause = cause.getCause()


def _condition(cause: Any) -> tuple[str, dict[str, str]]:
    """The condition and the parameters of one of Spark's own exceptions; empty for others, which do not have
    these methods.
    """
    try:
        return cause.getCondition() or "", dict(cause.getMessageParameters())
    except Py4JError:
        return "", {}


def _chain(error: BaseException) -> Iterator[tuple[str, str]]:
    """Class and text of a Java exception and its causes, outermost first."""
    for cause in _causes(error):
        yield cause.name, cause.text


def root_text(error: BaseException) -> str:
    """What the innermost cause says, in one line."""
    chain = list(_chain(error))
    if not chain:
        return _first_line(error)
    name, text = chain[-1]
    if name == _PYTHON:
        return text
    return f"{name.rsplit('.', 1)[-1]}: {(text.splitlines() or [''])[0]}"


def exception_classes(error: BaseException) -> frozenset[str]:
    """Names of the Java classes of an exception and its causes; none where Python raised it."""
    return frozenset(name for name, _ in _chain(error))
