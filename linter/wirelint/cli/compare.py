"""``wirelint compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirelint.cli.completing import complete_path

if TYPE_CHECKING:
    from wirelint.facts import ModelFacts

__all__ = ["command"]

_PAIR = 2


@click.command("compare")
@click.argument("models", nargs=-1, required=True, metavar="REFERENCE MODEL", shell_complete=complete_path)
@click.option("--bucket", is_flag=True, help="Two or more models compiled for several shapes: they must differ in these alone.")
@click.option(
    "--output-format", "-f", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to report."
)
@click.option(
    "--output-file", "-o", shell_complete=complete_path, metavar="FILE", help="Write there instead of to standard output."
)
@click.pass_context
def command(ctx: click.Context, models: tuple[str, ...], bucket: bool, output_format: str, output_file: str | None) -> None:
    """Show what conversion or optimisation changed.

    Inputs and outputs are matched by role, name and position, whatever the formats. Exit status: 0 nothing lost, 1 something
    was lost or changed.
    """
    if len(models) < _PAIR or (len(models) > _PAIR and not bucket):
        raise click.UsageError(
            "give two or more models" if bucket else "give a reference and a model (or --bucket and several)"
        )
    from wirelint.cli.common import write_output

    text = output_format == "text"
    found = [_facts(model) for model in models]
    report, lost = _buckets(found, text=text) if bucket else _pair(found[0], found[1], text=text)
    write_output(report, output_file)
    ctx.exit(1 if lost else 0)


def _pair(reference: ModelFacts, model: ModelFacts, *, text: bool) -> tuple[str, bool]:
    from wirelint.cli.common import terminal_width
    from wirelint.compare import differences
    from wirelint.compare.report import comparison_document, comparison_text

    found = differences(reference, model)
    lost = any(difference.lost for difference in found)
    if text:
        return comparison_text(reference.path, model.path, found, terminal_width()), lost
    return comparison_document(reference.path, model.path, found), lost


def _buckets(models: list[ModelFacts], *, text: bool) -> tuple[str, bool]:
    from wirelint.cli.common import terminal_width
    from wirelint.compare import bucket_mismatches
    from wirelint.compare.report import bucket_document, bucket_text

    found = bucket_mismatches(models)
    paths = [model.path for model in models]
    return (bucket_text(paths, found, terminal_width()) if text else bucket_document(paths, found)), bool(found)


def _facts(path: str) -> ModelFacts:
    from wirelint.api import facts
    from wirelint.errors import ConfigurationError

    try:
        return facts(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror or error}") from None
