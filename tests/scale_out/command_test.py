"""The command line refuses before Spark is started."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from spark_jobs.command import spark


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--name", "run"], "no checkpoint directory"),
        (["--name", "a b", "--checkpoint", "c"], "cannot be the name of a run"),
        (["--name", "run", "--checkpoint", "c", "--key", "s"], "is not STREAM=COLUMN"),
        (["--name", "run", "--checkpoint", "c", "--shards", "-1"], "shards = -1"),
        (["--name", "run", "--checkpoint", "c", "--rows-max", "0"], "rows_max = 0"),
    ],
)
def test_wrong_settings_are_told_without_a_session(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(spark, ["run", "scale-out", *arguments, "--json"])
    assert done.exit_code == 1
    assert said in json.loads(done.stdout)["error"]["message"]


def test_it_is_among_the_jobs() -> None:
    done = CliRunner().invoke(spark, ["jobs", "--json"])
    assert "scale-out" in json.loads(done.stdout)
