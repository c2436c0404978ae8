"""Data and helpers that ``cli_test.py`` shares with other tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from tests.client.conftest import Broker
from tureen.cli import main


def tureen_(*args: str, broker: Broker | None = None, stdin: str | None = None) -> Result:
    environment = {} if broker is None else broker.environment
    return CliRunner().invoke(main, list(args), input=stdin, env=environment, catch_exceptions=False)
