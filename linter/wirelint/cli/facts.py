"""``wirelint facts``."""

from __future__ import annotations

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]


@click.command("facts")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", shell_complete=complete_path)
@click.option(
    "--output-format", "-f", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to show."
)
@click.option(
    "--output-file", "-o", shell_complete=complete_path, metavar="FILE", help="Write there instead of to standard output."
)
def command(models: tuple[str, ...], output_format: str, output_file: str | None) -> None:
    """Show what wirelint knows about a model, without judging it.

    These are the names that the conditions of rules are written in.
    """
    from wirelint.api import facts
    from wirelint.cli.common import write_output
    from wirelint.errors import ConfigurationError
    from wirelint.report.facts import json_document, text_pages

    try:
        found = [facts(model) for model in models]
    except OSError as error:
        raise ConfigurationError(f"{error.filename}: can't be read: {error.strerror or error}") from None
    write_output(json_document(found) if output_format == "json" else text_pages(found), output_file)
