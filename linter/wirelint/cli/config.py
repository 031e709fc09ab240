"""``wirelint config``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wirelint.cli.completing import complete_path

__all__ = ["command"]


@click.command("config")
@click.argument("path", default=".", shell_complete=complete_path)
def command(path: str) -> None:
    """Show the settings that hold for a model, and where they come from."""
    from wirelint.cli.common import write_output
    from wirelint.config import config_for

    place = Path(path)
    config = config_for(place / "model.onnx" if place.is_dir() else place)
    settings = config if place.is_dir() else config.for_model(config.relative(path))
    shown = {
        "file": None if config.path is None else str(config.path),
        "select": "all" if settings.select is None else list(settings.select),
        "ignore": list(settings.ignore),
        "severity": {rule: severity.value for rule, severity in settings.severity},
        "fail-on": "never" if settings.fail_on is None else settings.fail_on.value,
        "exclude": list(settings.exclude),
        "rules": [str(folder) for folder in settings.rules],
        "baseline": None if settings.baseline is None else str(settings.baseline),
        "suppressions": [{"rule": waiver.rule, "path": waiver.path, "reason": waiver.reason} for waiver in settings.waivers],
        "trust-model-suppressions": settings.trust_model_suppressions,
    }
    write_output(json.dumps(shown, indent=2) + "\n", None)
