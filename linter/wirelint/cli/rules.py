"""``wirelint rules``."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]


@click.command("rules")
@click.option(
    "--output-format", "-f", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to list."
)
@click.option(
    "--rules", "folders", multiple=True, shell_complete=complete_path, metavar="DIR", help="A folder with further rules."
)
def command(output_format: str, folders: tuple[str, ...]) -> None:
    """List the rules, each with the worst severity that it may have; `wirelint explain RULE` says more."""
    from wirelint.cli.common import terminal_width, write_output
    from wirelint.rules import load_rules
    from wirelint.rules.page import as_object

    rules = load_rules(tuple(Path(folder) for folder in folders)).rules
    if output_format == "json":
        document = {"schema": "wirelint-rules/1", "rules": [as_object(rule) for rule in rules]}
        write_output(json.dumps(document, indent=2) + "\n", None)
        return
    width = max(len(rule.id) for rule in rules)
    heads = [f"{rule.code:7}{rule.id:{width}}  {rule.severity:7}  " for rule in rules]
    room = max(terminal_width() - len(heads[0]), 40)
    texts = [textwrap.shorten(rule.summary, room, placeholder=" ...") for rule in rules]
    write_output("".join(f"{head}{text}\n" for head, text in zip(heads, texts, strict=True)), None)
