"""``wirelint version``."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import click

from wirelint._version import __version__

__all__ = ["command"]

_PARTS = ("onnx", "lxml", "numpy", "networkx", "openvino", "onnxruntime")


@click.command("version")
def command() -> None:
    """Print the versions of wirelint and what it reads models with, as bug reports need them."""
    from wirelint.cli.common import write_output

    lines = [f"wirelint {__version__}", f"Python {sys.version.split()[0]} on {platform.system()} {platform.machine()}"]
    for part in _PARTS:
        try:
            found = version(part)
        except PackageNotFoundError:
            found = "not installed"
        lines.append(f"{part} {found}")
    write_output("\n".join(lines) + "\n", None)
