"""``wirelint check``."""

from __future__ import annotations

import click

from wirelint.cli.common import ProgressLine, expand_paths, severities, terminal_width, use_color, words, write_output
from wirelint.cli.completing import complete_path, complete_rules
from wirelint.report import FORMATS, RenderOptions, renderer

__all__ = ["command"]


@click.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=complete_path)
@click.option(
    "--output-format", "-f", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="How to report."
)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="FILE",
    help="Write the report there instead of to standard output.",
)
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "note", "never"]), help="Exit with 1 from this severity on [error]."
)
@click.option(
    "--select",
    multiple=True,
    shell_complete=complete_rules,
    metavar="RULES",
    help="Look only for these: ids, codes, beginnings of codes, families.",
)
@click.option("--ignore", multiple=True, shell_complete=complete_rules, metavar="RULES", help="Leave these out of the report.")
@click.option("--severity", multiple=True, metavar="RULE=LEVEL", help="Report a rule as error, warning or note.")
@click.option(
    "--min-confidence",
    type=click.Choice(["high", "medium", "low"]),
    default="low",
    help="Leave out findings that are less sure.",
)
@click.option(
    "--config",
    shell_complete=complete_path,
    metavar="FILE",
    help="Use this configuration instead of the nearest one upwards from each model.",
)
@click.option("--no-config", is_flag=True, help="Use no configuration file.")
@click.option("--rules", multiple=True, shell_complete=complete_path, metavar="DIR", help="A folder with further rules.")
@click.option(
    "--baseline",
    shell_complete=complete_path,
    metavar="FILE",
    help="Findings in this file do not count; see 'wirelint baseline'.",
)
@click.option("--no-baseline", is_flag=True, help="Use no baseline, whatever the configuration says.")
@click.option(
    "--reference",
    shell_complete=complete_path,
    metavar="MODEL",
    help="The model that the checked ones were made from; hold them to it.",
)
@click.option(
    "--only-models", is_flag=True, help="Pass over named files that are no model, for hooks; with none left, exit with 0."
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=1, show_default=True, help="Check in this many processes.")
@click.option("--show-suppressed", is_flag=True, help="List what is suppressed, and by whose word.")
@click.option("--statistics", is_flag=True, help="Add how often each rule was met.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour the report.")
@click.option("--quiet", "-q", is_flag=True, help="Findings without explanation.")
@click.option("--verbose", "-v", is_flag=True, help="Every model, its inputs and their roles, and what was passed over.")
@click.option("--debug", is_flag=True, help="Show where wirelint itself failed.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    output_format: str,
    output_file: str | None,
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: tuple[str, ...],
    min_confidence: str,
    config: str | None,
    no_config: bool,
    rules: tuple[str, ...],
    baseline: str | None,
    no_baseline: bool,
    reference: str | None,
    only_models: bool,
    jobs: int,
    show_suppressed: bool,
    statistics: bool,
    color: str,
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """Check models and report what is wired wrongly.

    PATH is a file, a folder, or - for a list of paths on standard input.
    """
    from wirelint.api import check
    from wirelint.findings import ExitStatus

    progress = ProgressLine(enabled=not quiet)
    try:
        report = check(
            expand_paths(paths),
            config=False if no_config else config,
            select=words(select) or None,
            ignore=words(ignore),
            severity=severities(severity),
            fail_on=fail_on,
            min_confidence=min_confidence,
            rules=rules,
            baseline=False if no_baseline else baseline,
            reference=reference,
            only_models=only_models,
            jobs=jobs,
            progress=progress,
        )
    finally:
        progress.clear()
    colored = use_color(color, output_file)
    options = RenderOptions(colored, terminal_width(), verbose, quiet, show_suppressed, statistics)
    write_output(renderer(output_format)(report, options), output_file, color=colored)
    for model in report.models:
        if model.fault:
            click.echo(f"wirelint: {model.path}: {model.fault}", err=True)
        if debug and model.traceback:
            click.echo(model.traceback, err=True)
    status = report.exit_status
    if status is ExitStatus.NO_MODEL:
        if only_models:
            status = ExitStatus.CLEAN
        else:
            click.echo("wirelint: no model file (.onnx, or .xml of an OpenVINO IR) among the paths", err=True)
    ctx.exit(int(status))
