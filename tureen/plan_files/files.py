"""Plans in files: JSON, or YAML where PyYAML is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tureen.errors import PackageMissing, PlanRefused

YAML = (".yaml", ".yml")
BYTES_MAX = 1024 * 1024


def read(text: str, name: str) -> Any:
    """What a file has. name: by its ending it is YAML, else JSON. Raises PlanRefused, PackageMissing."""
    if len(text.encode()) > BYTES_MAX:
        raise PlanRefused("plan", f"{name} is larger than {BYTES_MAX // 1024:,} KiB")
    return _read_yaml(text, name) if name.endswith(YAML) else _read_json(text, name)


def written(plan: Mapping[str, Any], name: str) -> str:
    """A plan as a file has it. Raises PackageMissing."""
    if not name.endswith(YAML):
        return json.dumps(plan, indent=2, ensure_ascii=False) + "\n"
    text: str = _yaml().safe_dump(dict(plan), sort_keys=False, allow_unicode=True, width=100)
    return text


def load(path: Path) -> Any:
    """A file. Raises PlanRefused, PackageMissing."""
    try:
        return read(path.read_text(encoding="utf-8"), path.name)
    except UnicodeDecodeError as error:
        raise PlanRefused("plan", f"{path.name} is not UTF-8: byte {error.start}") from None


def _read_json(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise PlanRefused(
            "plan", f"{name} is not JSON: {error.msg}", line=error.lineno, column=error.colno
        ) from None
    except RecursionError:
        raise PlanRefused("plan", f"{name} is nested too deep") from None


def _once(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise PlanRefused("plan", f"the name {name!r} is no text", hint="put it in quotes")
        if name in found:
            raise PlanRefused(name, "is given twice")
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise PlanRefused("plan", f"{text} is no number in JSON")


def _read_yaml(text: str, name: str) -> Any:
    yaml = _yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Refuses keys that come twice, and references, with which a small file makes a large plan."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise PlanRefused("plan", "YAML references are not read")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            return _once(
                [
                    (self.construct_object(key, True), self.construct_object(value, True))
                    for key, value in node.value
                ]
            )

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise PlanRefused("plan", f"{name} is not YAML: {problem}", **where) from None
    except RecursionError:
        raise PlanRefused("plan", f"{name} is nested too deep") from None


def _yaml() -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise PackageMissing("pyyaml", hint="pip install pyyaml, or write the plan as JSON") from None
    return yaml
