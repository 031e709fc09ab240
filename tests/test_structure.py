"""Imports point one way, down the flow from a file to a report."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wirelint

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(wirelint.__file__).parent

LAYERS = [
    {"_version", "dtypes", "layout", "paragraphs", "printable", "shell", "suggest"},
    {"errors"},
    {"globs", "graph", "located"},
    {"ops"},
    {"formats"},
    {"trace"},
    {"shadow"},
    {"facts"},
    {"compare", "contract", "picture"},
    {"expect"},
    {"analysis"},
    {"findings"},
    {"baseline", "rules", "suppress"},
    {"config", "discovery", "inspection"},
    {"policy", "report", "verify"},
    {"api"},
    {"fix"},
    {"cli"},
    {"wirelint"},
    {"__main__"},
]
"""What stands directly in the package, in the order of the flow.  A module imports from earlier layers, not from its own."""

ONLY_FOR = {"formats": {"api", "fix", "inspection", "verify"}}
"""Who may import what is not for every later layer: nothing that judges a graph knows which format it came from."""


def unit(module: str) -> str:
    """``graph`` for ``wirelint.graph``, ``formats`` for ``wirelint.formats.onnx.wire``."""
    return module.split(".")[1] if "." in module else module


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """What a file imports when it runs, at its top or inside a function; imports for types alone don't count."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            if node.module == "wirelint":
                yield from (f"wirelint.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""
        waiting.extend(ast.iter_child_nodes(node))


MODULES = modules()
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
EDGES = {
    module: {name for name in imported(path) if name.split(".")[0] == "wirelint" and unit(name) != unit(module)}
    for module, path in MODULES.items()
}


def test_every_part_has_a_layer() -> None:
    assert {unit(module) for module in MODULES} == set(RANK)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down_the_flow(module: str) -> None:
    upwards = {name for name in EDGES[module] if RANK[unit(name)] >= RANK[unit(module)]}
    assert not upwards


@pytest.mark.parametrize("part", ONLY_FOR)
def test_only_those_who_read_files_know_of_formats(part: str) -> None:
    importers = {unit(module) for module, names in EDGES.items() if part in map(unit, names)}
    assert importers <= ONLY_FOR[part]


def test_formats_do_not_know_of_each_other() -> None:
    for one, other in (("onnx", "openvino"), ("openvino", "onnx")):
        for module, path in MODULES.items():
            if module.startswith(f"wirelint.formats.{one}"):
                assert not [name for name in imported(path) if name.startswith(f"wirelint.formats.{other}")]
