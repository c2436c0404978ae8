"""What the job is told, before it starts."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.archive.command import archive
from spark_jobs.archive.settings import ArchiveSettings
from spark_jobs.settings import StreamSettings
from tureen.errors import SettingsError

STREAM = StreamSettings("checkpoint")
KAFKA = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"root": "", "streams": ("s",)}, "no archive is named"),
        ({}, "nothing to archive is named"),
        ({"streams": ("s",), "all_streams": True}, "all are named, and some by name as well"),
        ({"results": ("t",), "all_results": True}, "all are named, and some by name as well"),
        ({"streams": ("s",), "records_at_once": 0}, "0 records at once"),
        ({"streams": ("s",), "kafka": {}}, "no Kafka is named"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        ArchiveSettings(**{"root": "archive", "kafka": KAFKA, "stream": STREAM} | given)


def test_no_password_is_shown() -> None:
    given = ArchiveSettings("archive", KAFKA | {"sasl.password": "secret"}, STREAM, streams=("s",))
    assert "secret" not in repr(given)


def test_the_command_needs_a_checkpoint_and_something_to_do() -> None:
    runner = CliRunner()
    told = runner.invoke(archive, ["--archive", "archive", "--all-streams"])
    assert (told.exit_code, "--checkpoint" in told.output) == (2, True)
    told = runner.invoke(archive, ["--archive", "archive", "--checkpoint", "here"])
    assert (told.exit_code, "nothing to archive" in told.output) == (1, True)
