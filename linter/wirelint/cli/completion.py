"""``wirelint completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash, in ~/.bashrc:  eval "$(wirelint completion bash)"
    zsh, in ~/.zshrc:    eval "$(wirelint completion zsh)"
    fish:                wirelint completion fish > ~/.config/fish/completions/wirelint.fish
    """  # noqa: D301 -- click wants the character, which keeps the lines as they are
    from wirelint.cli import cli
    from wirelint.cli.common import write_output

    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"no completion for {shell}")
    write_output(maker(cli, {}, "wirelint", "_WIRELINT_COMPLETE").source() + "\n", None)
