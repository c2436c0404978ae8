"""The command line where its surroundings are odd: streams closed or full, bytes that are no text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NOBODY = "--url http://127.0.0.1:1"


def told(line: str, **variables: bytes) -> tuple[int, str]:
    """The exit code, and stderr, of a shell's line; ``tureen`` in it is the command."""
    command = line.encode("utf-8", "surrogateescape").replace(b"tureen", b'"$PYTHON" -m tureen')
    environment = {name: value for name, value in os.environb.items() if not name.startswith(b"TUREEN_")}
    environment |= {b"PYTHON": os.fsencode(sys.executable)}
    environment |= {name.encode(): value for name, value in variables.items()}
    done = subprocess.run(
        [b"sh", b"-c", command], env=environment, capture_output=True, timeout=60, check=False
    )
    said = done.stderr.decode(errors="replace")
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    return done.returncode, said


@pytest.mark.parametrize("command", ["sql", "register", "match s", "plan check -"])
def test_a_closed_stdin_is_an_empty_one(command: str) -> None:
    assert told(f"tureen {command} {NOBODY} <&-") == told(f"tureen {command} {NOBODY} </dev/null")


@pytest.mark.parametrize("command", ["completion bash", "--help", "--version", "snapshot --help"])
@pytest.mark.parametrize(("where", "why"), [(">/dev/full", "No space left"), (">&-", "Bad file descriptor")])
def test_output_that_cannot_be_written_is_one_line(command: str, where: str, why: str) -> None:
    code, said = told(f"tureen {command} {where}")
    assert code == 1
    assert said.startswith(f"error: the output cannot be written: {why}")
    assert said.count("\n") == 1


def test_an_error_as_json_that_cannot_be_written_is_one_line() -> None:
    code, said = told(f"tureen queries {NOBODY} --json >/dev/full")
    assert code == 1
    assert said.startswith("error: the output cannot be written")


@pytest.mark.parametrize(
    "command",
    ["snapshot", "watch", "unregister", "entity show", "explain", "infer", "plan export", "pause", "trace"],
)
def test_an_argument_that_is_no_text_is_told(command: str) -> None:
    code, said = told(f"tureen {command} a\udcff {'0 0' if command == 'trace' else ''} {NOBODY}")
    assert code in (1, 2), said
    assert "is not valid UTF-8" in said or "is not valid Unicode" in said


@pytest.mark.parametrize("token", ["é", "a\nb", "a ", "\t", "\udcff"])
def test_a_token_that_cannot_be_sent_is_told(token: str) -> None:
    code, said = told(f"tureen queries {NOBODY} --token '{token}'")
    assert code == 1, said
    assert "a token has printable ASCII characters alone" in said


@pytest.mark.parametrize("handle", ["", "../../status", "..", "a/b"])
def test_what_is_no_handle_is_told_as_one_that_is_unknown(handle: str) -> None:
    code, said = told(f"tureen snapshot '{handle}' {NOBODY}")
    assert code == 1, said
    assert "there is no query with this handle" in said
