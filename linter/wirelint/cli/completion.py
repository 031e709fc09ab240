"""``wirelint completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    r"""Print the completion script for a shell.

    \b
    For bash:  eval "$(wirelint completion bash)"
    """
    from wirelint.cli import cli

    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(maker(cli, {}, "wirelint", "_WIRELINT_COMPLETE").source())
