"""``wirelint verify``."""

from __future__ import annotations

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]

_GIB = 1 << 30


@click.command("verify")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", shell_complete=complete_path)
@click.option(
    "--output-format",
    "-f",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="How to report.",
)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="FILE",
    help="Write the report there instead of to standard output.",
)
@click.option("--paths/--no-paths", default=True, help="Compare the execution paths that this machine offers, too.")
@click.option(
    "--reference",
    shell_complete=complete_path,
    metavar="MODEL",
    help="The model that this one was made from, in either format; compare the outputs.",
)
@click.option("--bisect", is_flag=True, help="Where they differ, name the first operator that does; needs --reference.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the inputs.")
@click.option("--show-inputs", is_flag=True, help="Print what was fed.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Give loading a model, and each run, no more than this.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    default=8.0,
    show_default=True,
    metavar="GIB",
    help="Let the process that runs a model use no more than this.",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour the report.")
@click.option("--debug", is_flag=True, help="Show where wirelint itself failed.")
@click.pass_context
def command(
    ctx: click.Context,
    models: tuple[str, ...],
    output_format: str,
    output_file: str | None,
    paths: bool,
    reference: str | None,
    bisect: bool,
    seed: int,
    show_inputs: bool,
    timeout: float,
    memory: float,
    color: str,
    debug: bool,
) -> None:
    """Run models, and hold what wirelint says of them against what running shows.

    Needs the runtimes: pip install "wirelint[runtime]".

    \b
    Exit status: 0 no fault seen; 1 padding leaks, rows mix, paths part, or a model does not run;
    2 a verdict is refuted, which is a bug of wirelint, or wirelint could not run.
    """  # noqa: D301 -- click wants the character, which keeps the lines as they are
    del debug  # read by the group, which reports faults
    from wirelint.cli.common import terminal_width, use_color, write_output
    from wirelint.errors import ConfigurationError, ModelFileError
    from wirelint.findings import ExitStatus
    from wirelint.verify import Limits, Status, Verification, Worker, json_document, junit, text, verify

    if bisect and reference is None:
        raise click.UsageError("--bisect needs --reference")
    limits = Limits(timeout, int(memory * _GIB))
    try:
        with Worker(limits) as worker:
            found = []
            for model in models:
                try:
                    made = verify(model, worker=worker, seed=seed, paths=paths, reference=reference, bisect=bisect)
                except ModelFileError as error:
                    # A damaged model is a finding, and keeps no other from being measured.
                    made = Verification(model, seed=seed, stopped=error.reason)
                found.append(made)
    except OSError as error:
        raise ConfigurationError(f"{error.filename}: can't be read: {error.strerror or error}") from None
    colored = use_color(color, output_file)
    if output_format == "json":
        report = json_document.render(found, show_inputs=show_inputs)
    elif output_format == "junit":
        report = junit.render(found)
    else:
        report = text.render(found, width=terminal_width(), color=colored, show_inputs=show_inputs)
    write_output(report, output_file, color=colored)
    if any(made.with_status(Status.REFUTED) for made in found):
        ctx.exit(int(ExitStatus.FAULT))
    ctx.exit(int(ExitStatus.FINDINGS if any(made.faults for made in found) else ExitStatus.CLEAN))
