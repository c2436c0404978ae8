"""The command ``tureen``: finds its subcommands, shows refusals, decides the exit code.

Subcommands are entry points of the group ``tureen.commands``. Only the one that is invoked is imported; the
list of ``tureen --help`` is read from their sources, so it is quick however much they need.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the broker or Kafka cannot be reached.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click

from tureen import standard_streams
from tureen.errors import BrokerUnavailable, KafkaUnavailable, TureenError

FAILED = 1
WRONG_USAGE = 2
UNREACHABLE = 3


class Commands(click.Group):
    """A group whose commands are entry points."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Whatever a command does: what it is given that is no text, and output that cannot be written, are
        told in one line.
        """
        standard_streams.opened()
        try:
            with standard_streams.flushed():
                return super().main(args, *more, **extra)
        except standard_streams.OutputLost as lost:
            click.echo(f"error: {lost}", err=True)
            sys.exit(FAILED)
        except UnicodeEncodeError:
            wrong = _no_text(sys.argv[1:] if args is None else args)
            if wrong is None:
                raise
            click.echo(f"error: {wrong} is not valid UTF-8", err=True)
            sys.exit(WRONG_USAGE)

    @cached_property
    def _found(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group="tureen.commands")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        point = self._found.get(cmd_name)
        if point is None:
            return None
        try:
            command = point.load()
        except ModuleNotFoundError as missing:
            raise click.ClickException(_missing(cmd_name, point.module, missing)) from None
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Known before anything is parsed: wrong usage is told in JSON too.
        ctx.meta["tureen.json"] = "--json" in args
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0] if args else "", self._found, n=1)
            if close and close[0] != args[0]:
                error.message += f" Did you mean {close[0]!r}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max((len(name) for name in self._found), default=0)
        rows = [(name, _shortened(summary(self._found[name]), width)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _invoked(self, ctx: click.Context) -> Any:
        """A command may import what it needs as late as when it runs."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            name = ctx.invoked_subcommand or ""
            if (missing.name or "").split(".", 1)[0] in _OURS or name not in self._found:
                raise
            raise click.ClickException(_missing(name, self._found[name].module, missing)) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoked(ctx)
        except TureenError as error:
            from tureen.console import show_error

            show_error(error, sql=ctx.meta.get("tureen.sql"), as_json=ctx.meta.get("tureen.json", False))
            ctx.exit(UNREACHABLE if isinstance(error, BrokerUnavailable | KafkaUnavailable) else FAILED)
        except click.ClickException as error:
            if not ctx.meta["tureen.json"]:
                raise
            from tureen.console import show_wrong_usage

            show_wrong_usage(error)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            # Whoever read our output has gone, as `head` does.
            sys.stderr.close()
            ctx.exit(0)


def _no_text(arguments: Sequence[str]) -> str | None:
    """Which argument, or variable of the environment, has bytes that are no text; None: none has."""
    for place, text in enumerate(arguments, 1):
        if not _is_text(text):
            return f"argument {place}"
    return next((n for n, text in os.environ.items() if n.startswith("TUREEN_") and not _is_text(text)), None)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def summary(point: EntryPoint) -> str:
    """The first line of a command's docstring, read from its source; empty where there is none."""
    try:
        spec = importlib.util.find_spec(point.module)
        if spec is None or spec.origin is None:
            return ""
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    except (ImportError, OSError, SyntaxError):
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == point.attr:
            return (ast.get_docstring(node) or "").split("\n", 1)[0]
    return ""


def _shortened(text: str, width: int) -> str:
    text = text.rstrip(".")
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + "…"


def _missing(name: str, module: str, missing: ModuleNotFoundError) -> str:
    package = (missing.name or "").split(".", 1)[0]
    if package == "tureen":
        return f"tureen {name} is not part of this installation: {missing}"
    extra = _EXTRAS.get(name, "server")
    return (
        f"`tureen {name}` needs packages of the extra {extra!r}, and {package!r} is not installed.\n"
        f"In a clone of Tureen: pip install '.[{extra}]'"
    )


_OURS = {"tureen", "broker", "topics", "engine", "storage", "spark_jobs"}
_EXTRAS = {"demo": "server,demo", "demo-spark": "server,demo-spark", "spark": "server,spark"}
"""Extras of commands that need more than ``server``."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tureen", prog_name="tureen")
def main() -> None:
    """Continuous SQL queries on Kafka; each answer is fetched by a handle.

    \b
    tureen up       a Kafka on this machine       tureen demo   a demonstration with real flights
    tureen serve    the broker                    tureen sql    run statements
    """
