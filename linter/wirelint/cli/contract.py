"""``wirelint contract``."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]


@click.command("contract")
@click.argument("model", metavar="MODEL", shell_complete=complete_path)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="FILE",
    help="Write there, or to standard output with -  [MODEL's name.contract.yaml].",
)
@click.option("--force", is_flag=True, help="Overwrite a contract that is there.")
def command(model: str, output_file: str | None, force: bool) -> None:
    """Write down what callers of a model may rely on.

    'wirelint check' then holds later exports under the same name to it. Edit the file to leave open what may change.
    """
    from wirelint.api import facts
    from wirelint.cli.common import write_output
    from wirelint.contract import contract_text
    from wirelint.errors import ConfigurationError
    from wirelint.layout import CONTRACT_SUFFIX

    path = Path(model)
    target = output_file or str(path.with_name(path.stem + CONTRACT_SUFFIX))
    if target != "-" and not force and Path(target).exists():
        raise ConfigurationError(f"{target}: is there already; --force overwrites it")
    try:
        found = facts(model)
    except OSError as error:
        raise ConfigurationError(f"{model}: can't be read: {error.strerror or error}") from None
    write_output(contract_text(found), target)
    if target != "-":
        click.echo(f"wirelint: wrote {target}", err=True)
