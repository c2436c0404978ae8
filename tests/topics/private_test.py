"""Directories that only their owner can enter: made so, and refused with the command that mends them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from topics.embedded import up
from topics.private import private_directory
from tureen.errors import DirectoryNotPrivate, TureenError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_directory(tmp_path / "state")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "state") == 0o700
    private_directory(tmp_path / "state")


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o770, 0o701, 0o710])
def test_a_wider_directory_is_refused_with_the_command_that_narrows_it(tmp_path: Path, mode: int) -> None:
    wide = tmp_path / "a state"
    wide.mkdir()
    wide.chmod(mode)
    with pytest.raises(DirectoryNotPrivate, match=f"mode 0{mode:o}") as refused:
        private_directory(wide)
    assert refused.value.hint == f"chmod 700 '{wide}'"
    wide.chmod(0o700)
    private_directory(wide)


def test_a_link_is_checked_by_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "disk").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with pytest.raises(DirectoryNotPrivate) as refused:
        private_directory(tmp_path / "link")
    assert refused.value.hint == f"chmod 700 {tmp_path / 'disk'}"
    (tmp_path / "disk").chmod(0o700)
    private_directory(tmp_path / "link")


def test_a_directory_that_everybody_can_replace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open" / "state").mkdir(parents=True, mode=0o700)
    (tmp_path / "open" / "state").chmod(0o700)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(DirectoryNotPrivate, match="can replace") as refused:
        private_directory(tmp_path / "open" / "state")
    assert (refused.value.hint or "").startswith(f"chmod o-w {tmp_path / 'open'}")
    (tmp_path / "open").chmod(0o1777)
    private_directory(tmp_path / "open" / "state")


def test_the_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 4_321)
    with pytest.raises(DirectoryNotPrivate, match=f"this process runs as {own + 4_321}") as refused:
        private_directory(tmp_path / "state")
    assert "chown" in (refused.value.hint or "")


def test_up_makes_the_data_directory_private_and_refuses_an_open_one(tmp_path: Path) -> None:
    with pytest.raises(TureenError):
        up(tmp_path / "data", port=-1)  # refused behind the making of the directory
    assert mode_of(tmp_path / "data") == 0o700
    assert mode_of(tmp_path / "data" / "kafka") == 0o700
    (tmp_path / "data").chmod(0o755)
    with pytest.raises(DirectoryNotPrivate):
        up(tmp_path / "data", port=-1)
