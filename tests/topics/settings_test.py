"""Kafka settings from a file, the environment and a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from topics.settings import kafka_settings
from tureen.errors import SettingsError


def test_the_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("# ours\nbootstrap.servers = a:1\nsasl.password=x=y \n\n! no\nlinger.ms=1\n")
    environ = {
        "TUREEN_KAFKA__BOOTSTRAP_SERVERS": "b:2",
        "TUREEN_KAFKA__ssl.ca.location": "/ca",
        "TUREEN_HTTP_PORT": "1",
    }
    assert kafka_settings({"linger.ms": 5, "enable.idempotence": True}, file=file, environ=environ) == {
        "bootstrap.servers": "b:2",
        "sasl.password": "x=y",
        "ssl.ca.location": "/ca",
        "linger.ms": "5",
        "enable.idempotence": "true",
    }


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        kafka_settings(file=tmp_path / "none", environ={})
    (tmp_path / "bad").write_text("a=1\nnonsense\n")
    with pytest.raises(SettingsError) as caught:
        kafka_settings(file=tmp_path / "bad", environ={})
    assert caught.value.line == 2
