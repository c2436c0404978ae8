"""The libraries of the page, and what of it is in the wheel."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "broker" / "page"
VENDOR = PAGE / "static" / "vendor"
LOCK = json.loads((PAGE / "libraries" / "package-lock.json").read_text())
VERSIONS = json.loads((VENDOR / "versions.json").read_text())

FORBIDDEN = {
    "markup made of text": r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write",
    "code made of text": r"\beval\(|new Function\(|setTimeout\(\s*[\"'`]",
    "what other tabs see": r"document\.cookie|indexedDB|localStorage(?!\.(get|set|remove)Item\(\"theme\")",
    "addresses of elsewhere": r"[\"'`(]https?://(?!www\.w3\.org/)",
}


def test_every_bundle_is_the_one_that_is_written_down() -> None:
    assert set(VERSIONS["bundles"]) == {path.name for path in VENDOR.glob("*.*s") if "d.ts" not in path.name}
    for name, bundle in VERSIONS["bundles"].items():
        data = (VENDOR / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (bundle["bytes"], bundle["sha256"]), name


def test_every_library_has_its_version_in_the_lock_and_its_licence() -> None:
    licenses = (VENDOR / "LICENSES.txt").read_text()
    bundled = {name for bundle in VERSIONS["bundles"].values() for name in bundle["libraries"]}
    assert {one["name"] for one in VERSIONS["libraries"]} == bundled
    for one in VERSIONS["libraries"]:
        assert LOCK["packages"][f"node_modules/{one['name']}"]["version"] == one["version"]
        assert f"{one['name']} {one['version']} ({one['license']})" in licenses
        assert one["license"] in ("MIT", "Apache-2.0", "BSD-3-Clause", "ISC")
    assert licenses.count("Permission is hereby granted") + licenses.count("Apache License") >= len(bundled)


def test_the_lock_has_a_hash_for_everything_and_names_no_registry() -> None:
    packages = {name: facts for name, facts in LOCK["packages"].items() if name}
    assert all(facts["integrity"].startswith("sha512-") for facts in packages.values())
    assert not any("resolved" in facts for facts in packages.values())
    asked = LOCK["packages"][""]
    for name, version in (asked["dependencies"] | asked["devDependencies"]).items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"{name} has no exact version"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_sources_of_the_page_have_no(what: str) -> None:
    sources = [path for path in (PAGE / "static").rglob("*.js") if path.parent != VENDOR]
    assert sources
    for path in sources:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not re.search(FORBIDDEN[what], line), f"{path.relative_to(PAGE)}:{number}: {line.strip()}"


SERVED = """
import re, sys
import broker.http.page_files as serving
assert serving.__file__.startswith(sys.argv[1]), serving.__file__
files = serving.PageFiles()
loaded = re.findall(r'(?:src|href)="page/([^"]+)"', bytes(files.index().body).decode())
assert len(loaded) > 10
assert not set(loaded) - set(files.paths), set(loaded) - set(files.paths)
assert not [path for path in files.paths if path.endswith(".ts")]
"""


@pytest.mark.timeout(500)
def test_the_wheel_has_the_page_and_not_what_it_is_made_of(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
             "--disable-pip-version-check", "--wheel-dir", str(tmp_path), str(ROOT)]  # fmt: skip
    subprocess.run(build, check=True, timeout=240)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("broker/page/")}
        archive.extractall(tmp_path / "installed")
    static = PAGE / "static"
    here = {f"broker/page/static/{path.relative_to(static)}" for path in static.rglob("*.*")}
    assert {name for name in names if "/static/" in name} == {name for name in here if ".d.ts" not in name}
    assert not [name for name in names if "libraries" in name or "node_modules" in name]
    installed = str(tmp_path / "installed")
    subprocess.run(
        [sys.executable, "-P", "-c", SERVED, installed],
        check=True, env={"PYTHONPATH": installed, "PATH": ""}, cwd=tmp_path, timeout=240,
    )  # fmt: skip
