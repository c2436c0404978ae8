"""What every job's command does around its work: options, signals, output, exit codes. No Spark starts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from spark_jobs.command import spark
from spark_jobs.errors import JarsMissing, JobStopped
from spark_jobs.running import CONTEXT, Given, Run, Stop, job_options, run_job, signals
from spark_jobs.settings import SparkSettings
from tureen.errors import KafkaUnavailable, SettingsError, TureenError


def invoked(prepare: Callable[[Given], Run], *arguments: str, **environment: str) -> Result:
    """A streaming job's command whose settings are made by ``prepare``."""

    @click.command(context_settings=CONTEXT)
    @job_options(streaming=True, reads_kafka=True)
    def job(given: Given) -> None:
        run_job("job", given, lambda: prepare(given), streaming=True)

    return CliRunner().invoke(job, arguments, env=environment)


def refusing(error: TureenError) -> Callable[[Given], Run]:
    def prepare(_: Given) -> Run:
        raise error

    return prepare


def test_what_is_given() -> None:
    seen: list[Given] = []

    def prepare(given: Given) -> Run:
        seen.append(given)
        raise SettingsError("enough")

    invoked(prepare, TUREEN_KAFKA__SECURITY_PROTOCOL="SSL", TUREEN_SERVICE_ID="mine")
    invoked(
        prepare, "--kafka", "bootstrap.servers=b:2", "--checkpoint", "c", "--once", "--every", "5",
        "--give-up-after", "60", "--accept-gap", "--conf", "a=b=c", "--package", "g:a:1",
        "--repository", "https://r", "--master", "local[1]",
    )  # fmt: skip
    plain, full = seen
    assert plain.kafka["security.protocol"] == "SSL"
    assert plain.kafka["bootstrap.servers"] == "127.0.0.1:19092"
    assert (plain.service_id, plain.stream) == ("mine", None)
    assert full.kafka["bootstrap.servers"] == "b:2"
    assert full.stream is not None
    assert (full.stream.checkpoint, full.stream.once, full.stream.accept_gap) == ("c", True, True)
    assert (full.stream.every_s, full.stream.give_up_after_s) == (5, 60)
    assert full.spark == SparkSettings("local[1]", "1g", {"a": "b=c"}, ("g:a:1",), ("https://r",))


def test_exit_codes_and_how_errors_are_told() -> None:
    refused = invoked(refusing(JarsMissing("no jar", hint="fetch it")))
    assert refused.exit_code == 1
    assert refused.stderr == "error: no jar\nhint: fetch it\n"
    away = invoked(refusing(KafkaUnavailable("gone")), "--json")
    assert away.exit_code == 3
    assert json.loads(away.stdout)["error"]["message"] == "gone"
    assert invoked(refusing(KafkaUnavailable("gone")), "--kafka", "nonsense").exit_code == 2
    assert invoked(refusing(KafkaUnavailable("gone")), "--once").exit_code == 2
    wrong = invoked(refusing(KafkaUnavailable("gone")), "--checkpoint", "c", "--every", "-1", "--json")
    assert (wrong.exit_code, json.loads(wrong.stdout)["error"]["code"]) == (1, "settings")
    package = invoked(refusing(KafkaUnavailable("gone")), "--package", "driver.jar")
    assert (package.exit_code, "group:artifact:version" in package.stderr) == (1, True)


def test_a_bug_is_no_refusal() -> None:
    def prepare(_: Given) -> Run:
        raise ZeroDivisionError

    assert isinstance(invoked(prepare).exception, ZeroDivisionError)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_ends(number: int) -> None:
    stop = Stop()
    before = signal.getsignal(number)
    with signals(stop, heeded=True):
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        with pytest.raises(JobStopped):
            signal.raise_signal(number)
    with pytest.raises(JobStopped, match=signal.Signals(number).name), signals(Stop(), heeded=False):
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_jobs_are_listed_and_each_has_help() -> None:
    listed = json.loads(CliRunner().invoke(spark, ["jobs", "--json"]).stdout)
    assert "sources" in listed
    for name, summary in listed.items():
        assert summary
        helped = CliRunner().invoke(spark, ["run", name, "--help"])
        assert helped.exit_code == 0, helped.output
        assert "--service-id" in helped.stdout
    assert CliRunner().invoke(spark, ["run", "nonsense"]).exit_code == 2


def test_a_wrong_java_is_told_by_the_command(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    java = bin_ / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path), "PATH": f"{bin_}:/nowhere"}
    result = invoked(lambda _: lambda session, stop: None, **environment)  # type: ignore[arg-type, return-value]
    assert result.exit_code == 1
    assert "error: Spark needs a Java from 17 to 21" in result.stderr
    assert "JAVA_HOME" in result.stderr
