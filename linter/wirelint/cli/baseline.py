"""``wirelint baseline``."""

from __future__ import annotations

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]


@click.command("baseline")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=complete_path)
@click.option(
    "--output-file",
    "-o",
    shell_complete=complete_path,
    metavar="FILE",
    default="wirelint-baseline.json",
    show_default=True,
    help="The baseline file.",
)
@click.option(
    "--config",
    shell_complete=complete_path,
    metavar="FILE",
    help="Use this configuration instead of the nearest one upwards from each model.",
)
@click.option("--no-config", is_flag=True, help="Use no configuration file.")
@click.option("--rules", multiple=True, shell_complete=complete_path, metavar="DIR", help="A folder with further rules.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=1, show_default=True, help="Check in this many processes.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    output_file: str,
    config: str | None,
    no_config: bool,
    rules: tuple[str, ...],
    jobs: int,
) -> None:
    """Accept today's findings, so that only new ones fail.

    Writes them to a file for 'wirelint check --baseline FILE', or the configuration's 'baseline'.
    """
    from wirelint.api import check
    from wirelint.baseline import dump_baseline
    from wirelint.cli.common import expand_paths, write_output
    from wirelint.report.common import counted

    report = check(expand_paths(paths), config=False if no_config else config, rules=rules, baseline=False, jobs=jobs)
    for model in report.models:
        if model.fault:
            click.echo(f"wirelint: {model.path}: {model.fault}", err=True)
    if any(model.fault for model in report.models):
        ctx.exit(2)
    if not report.models:
        click.echo("wirelint: no model file (.onnx, or .xml of an OpenVINO IR) among the paths", err=True)
        ctx.exit(3)
    write_output(dump_baseline(report), output_file)
    number = sum(report.counts().values())
    click.echo(f"wirelint: {counted(number, 'finding')} written to {output_file}", err=True)
