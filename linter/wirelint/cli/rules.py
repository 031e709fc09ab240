"""``wirelint rules``."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["command"]


@click.command("rules")
@click.option(
    "--output-format", "-f", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to list."
)
@click.option("--rules", "folders", multiple=True, metavar="DIR", help="A folder with further rules.")
def command(output_format: str, folders: tuple[str, ...]) -> None:
    """List the rules."""
    from wirelint.cli.common import write_output
    from wirelint.rules import load_rules
    from wirelint.rules.page import as_object

    rules = load_rules(tuple(Path(folder) for folder in folders)).rules
    if output_format == "json":
        document = {"schema": "wirelint-rules/1", "rules": [as_object(rule) for rule in rules]}
        write_output(json.dumps(document, indent=2) + "\n", None)
        return
    width = max(len(rule.id) for rule in rules)
    lines = [f"{rule.code}  {rule.id:{width}}  {rule.severity:7}  {rule.family:11}  {rule.message.general}" for rule in rules]
    write_output("\n".join(lines) + "\n", None)
