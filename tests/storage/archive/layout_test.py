"""Where the archive is."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.archive.layout import table_uri, whole_root


@pytest.mark.parametrize("given", ["lake", "./lake", "other/../lake/"])
def test_a_relative_root_is_seen_from_the_current_directory(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert table_uri(whole_root(given), "streams", "orders") == f"{tmp_path}/lake/streams/orders"


@pytest.mark.parametrize("given", ["/lake", "s3a://lake/tureen", "file:/lake", "hdfs://head:8020/lake"])
def test_a_whole_root_stays(given: str) -> None:
    assert whole_root(given) == given
