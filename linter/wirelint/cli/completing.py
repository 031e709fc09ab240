"""What a shell may put in place of an unfinished word: files, and the names of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click

__all__ = ["complete_path", "complete_rules"]


def complete_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leaves it to the shell, which knows its files."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def complete_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Rules and families; of several words, separated by commas, the last one."""
    del ctx, param
    from wirelint.rules import load_rules

    before, comma, begun = incomplete.rpartition(",")
    rules = load_rules().rules
    helps = {rule.family: f"all rules about {rule.family}" for rule in rules} | {rule.id: rule.summary for rule in rules}
    return [CompletionItem(before + comma + name, help=text) for name, text in sorted(helps.items()) if name.startswith(begun)]
