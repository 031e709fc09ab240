"""``wirelint graph``."""

from __future__ import annotations

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]

_WRITERS = {".svg": "wirelint.picture.svg", ".dot": "wirelint.picture.dot", ".mmd": "wirelint.picture.mermaid"}


@click.command("graph")
@click.argument("model", metavar="MODEL", shell_complete=complete_path)
@click.option(
    "--input", "-i", "wanted", required=True, metavar="NAME", help="The input to follow: its name, or its position from 0."
)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="FILE",
    help="Write there: .svg, .dot (Graphviz) or .mmd (Mermaid).  [standard output, as Mermaid]",
)
@click.option("--debug", is_flag=True, help="Show where wirelint itself failed.")
def command(model: str, wanted: str, output_file: str | None, debug: bool) -> None:
    """Draw the way of one input to the attention, the table or the pooling that it acts on.

    Steps that repeat in every layer are drawn once; the place where something goes wrong is marked.
    """
    del debug  # read by the group, which reports faults
    import importlib
    from pathlib import Path

    from wirelint.api import facts
    from wirelint.cli.common import write_output
    from wirelint.errors import ConfigurationError
    from wirelint.picture.drawing import draw_route
    from wirelint.printable import printable
    from wirelint.suggest import did_you_mean

    suffix = ".mmd" if output_file in (None, "-") else Path(str(output_file)).suffix.lower()
    if suffix not in _WRITERS:
        raise ConfigurationError(f"{output_file}: the name must end with {', '.join(_WRITERS)}")
    try:
        found = facts(model)
    except OSError as error:
        raise ConfigurationError(f"{error.filename}: can't be read: {error.strerror or error}") from None
    named = [entry for entry in found.inputs if wanted in (entry.name, *entry.names)]
    numbered = [entry for entry in found.inputs if wanted == str(entry.index)]
    if not named and not numbered:
        names = [printable(entry.name, 60) for entry in found.inputs if entry.name and not entry.weight]
        raise ConfigurationError(f"{model}: no input '{printable(wanted, 60)}'{did_you_mean(wanted, names)}")
    entry = (named or numbered)[0]
    drawing = draw_route(entry.route, f"{entry.shown} of {Path(model).name}: {entry.role}")
    write_output(importlib.import_module(_WRITERS[suffix]).render(drawing), output_file)
