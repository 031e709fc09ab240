"""``wirelint explain``."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.cli.completing import complete_path, complete_rules

__all__ = ["command"]


@click.command("explain")
@click.argument("rule", required=False, shell_complete=complete_rules)
@click.option("--all", "every", is_flag=True, help="Explain all rules.")
@click.option(
    "--output-format", "-f", type=click.Choice(["text", "markdown"]), default="text", show_default=True, help="How to write."
)
@click.option(
    "--output-dir", shell_complete=complete_path, metavar="DIR", help="With --all and markdown: write a file per rule there."
)
@click.option(
    "--rules", "folders", multiple=True, shell_complete=complete_path, metavar="DIR", help="A folder with further rules."
)
def command(rule: str | None, every: bool, output_format: str, output_dir: str | None, folders: tuple[str, ...]) -> None:
    """Explain a rule: what it means, why it matters, how to mend it, and its limits.

    RULE is an id (mask-partial), a code or the beginning of codes (WL203, WL2), or a family (mask).
    """
    from wirelint.cli.common import terminal_width, write_atomically, write_output
    from wirelint.rules import load_rules
    from wirelint.rules.page import markdown_page, text_page

    rules = load_rules(tuple(Path(folder) for folder in folders))
    if every == (rule is not None):
        raise click.UsageError("name a rule, or give --all")
    chosen = rules.select(rule if rule is not None else "all")
    pages = [entry for entry in rules.rules if entry.id in chosen]
    if output_dir is not None:
        if not every or output_format != "markdown":
            raise click.UsageError("--output-dir goes with --all and --output-format markdown")
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        for entry in pages:
            write_atomically(Path(output_dir) / f"{entry.id}.md", markdown_page(entry))
        return
    texts = [markdown_page(entry) if output_format == "markdown" else text_page(entry, terminal_width()) for entry in pages]
    write_output("\n".join(texts), None)
