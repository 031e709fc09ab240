"""The command line: one module per command, loaded when the command is called."""

from __future__ import annotations

import errno
import importlib
import sys
from typing import TYPE_CHECKING, Any

import click

from wirelint._version import __version__
from wirelint.errors import WirelintError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("wirelint.cli.check", "Check models and report what is wired wrongly."),
    "facts": ("wirelint.cli.facts", "Show what wirelint knows about a model, without judging it."),
    "verify": ("wirelint.cli.verify", "Run models, and hold what wirelint says of them against what running shows."),
    "graph": ("wirelint.cli.graph", "Draw the way of one input through a model."),
    "rules": ("wirelint.cli.rules", "List the rules."),
    "explain": ("wirelint.cli.explain", "Explain a rule."),
    "compare": ("wirelint.cli.compare", "Show what conversion or optimisation changed."),
    "contract": ("wirelint.cli.contract", "Write down what callers of a model may rely on."),
    "fix": ("wirelint.cli.fix", "Mend the names of a model's inputs, in a copy."),
    "baseline": ("wirelint.cli.baseline", "Accept today's findings, so that only new ones fail."),
    "config": ("wirelint.cli.config", "Show the settings that hold for a model, and where they come from."),
    "completion": ("wirelint.cli.completion", "Print the shell completion script."),
    "version": ("wirelint.cli.version", "Print the versions of wirelint and what it reads models with."),
}
"""Each command with the module whose ``command`` it is and its line in the help, in the help's order."""


_INTERRUPTED = 130
"""What shells expect of a program that was interrupted; click would say 1, which here means findings."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not to list it.

    It also turns every error into one line on standard error and exit status 2.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from wirelint.suggest import did_you_mean

            ctx.fail(f"no command '{name}'{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except WirelintError as error:
            click.echo(f"wirelint: error: {error}", err=True)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            if "--debug" in sys.argv:
                raise
            cause = f"{type(error).__name__}: {error}".replace("\n", " ")
            click.echo(f"wirelint: internal fault ({cause}); please report it, with the output of --debug", err=True)
        raise click.exceptions.Exit(2)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="wirelint %(version)s")
def cli() -> None:
    """Find wiring faults in ONNX and OpenVINO IR models, without running them.

    \b
    Exit status: 0 nothing at or above --fail-on, 1 findings,
    2 wirelint could not run, 3 no model file among the paths.
    """  # noqa: D301 -- click wants the character, which keeps the lines as they are


def main() -> None:
    """Runs the command line and exits."""
    cli(prog_name="wirelint")
