"""``wirelint fix``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirelint.cli.completing import complete_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirelint.fix import Fixed

__all__ = ["command"]


@click.command("fix")
@click.argument("model", metavar="MODEL", shell_complete=complete_path)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="OUT",
    help="Where the mended copy goes; with --force it may be MODEL itself.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and write nothing.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.pass_context
def command(ctx: click.Context, model: str, output_file: str | None, dry_run: bool, force: bool) -> None:
    """Mend the names of a model's inputs, in a copy.

    Inputs get the names that callers know, and a default that makes a needed input optional goes. Weights are copied as they
    are. Exit status: 0 nothing is left to mend, 1 something can't be mended in the file, which is explained.
    """
    if output_file is None and not dry_run:
        raise click.UsageError("say where the mended copy goes: -o OUT (or --dry-run)")
    from wirelint.cli.common import write_output
    from wirelint.errors import ConfigurationError
    from wirelint.fix import fix

    try:
        fixed = fix(model, None if dry_run else output_file, force=force)
    except OSError as error:
        raise ConfigurationError(f"{model}: can't be read: {error.strerror or error}") from None
    write_output("\n".join(_lines(fixed, model, output_file, dry_run=dry_run)) + "\n", None)
    ctx.exit(1 if fixed.advice.reasons else 0)


def _lines(fixed: Fixed, model: str, out: str | None, *, dry_run: bool) -> Iterator[str]:
    from wirelint.printable import printable

    target = "" if dry_run or out is None else f" -> {printable(out)}"
    yield f"{printable(model)}{target}"
    for entry in fixed.plan.renames:
        old = f"'{printable(entry.old)}'" if entry.old else "no name"
        yield f"  input {entry.index}: {old} -> '{printable(entry.new)}' ({printable(entry.reason)})"
    for name in fixed.plan.required:
        yield f"  input '{printable(name)}': its default is taken out, so that leaving it out is an error"
    if fixed.plan.empty:
        yield "  nothing to change" + ("" if out is None else ", so nothing was written")
    elif dry_run:
        yield "  nothing was written (--dry-run)"
    if fixed.advice.reasons:
        yield "not to be mended in the file:"
        yield from (f"  - {printable(reason)}" for reason in fixed.advice.reasons)
    if fixed.advice.export:
        yield from ("export it anew:", *_indented(fixed.advice.export))
    if fixed.plan.refused or (dry_run and fixed.plan.renames):
        yield from ("until then feed it by position:", *_indented(fixed.advice.feeding))


def _indented(code: str) -> list[str]:
    return [f"    {line}" for line in code.splitlines()]
