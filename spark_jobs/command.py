"""``tureen spark``: the jobs, each loaded when it is asked for."""

from __future__ import annotations

import importlib

import click

JOBS = ("sources", "nexmark", "archive", "compact", "scale-out")
"""A job's command is the function of its name in ``spark_jobs.<job>.command``, ``_`` for ``-`` in both."""


class Jobs(click.Group):
    """A group whose commands are the jobs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in JOBS:
            return None
        name = _module(cmd_name)
        command = getattr(importlib.import_module(f"spark_jobs.{name}.command"), name)
        assert isinstance(command, click.Command)
        return command


def _module(job: str) -> str:
    return job.replace("-", "_")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def spark() -> None:
    """Jobs on Spark: sources, archive, compaction, scale-out."""


@spark.group(cls=Jobs)
def run() -> None:
    """Run a job, on this machine or on a cluster."""


@spark.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def jobs(ctx: click.Context, as_json: bool) -> None:
    """List the jobs."""
    import json

    assert isinstance(run, Jobs)
    found = {}
    for name in run.list_commands(ctx):
        command = run.get_command(ctx, name)
        assert command is not None
        found[name] = command.get_short_help_str(limit=100)
    if as_json:
        click.echo(json.dumps(found))
        return
    width = max(map(len, found), default=0)
    for name, summary in found.items():
        click.echo(f"{name:{width}}  {summary}")
