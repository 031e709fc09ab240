"""Checks files in this process, or in one of their own with little memory and time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import wirelint
from wirelint.findings import ModelReport
from wirelint.report import FORMATS, RenderOptions, renderer

MEMORY = 2 << 30
"""Address space of a child, in bytes: the libraries alone take half a gigabyte."""
SECONDS = 60


class Bench:
    """What the tests do with a file."""

    @staticmethod
    def check(path: Path) -> ModelReport:
        """The report on a file, after every format has shown it; fails when wirelint stumbles."""
        report = wirelint.check(path, config=False)
        for name in FORMATS:
            renderer(name)(report, RenderOptions())
        (model,) = report.models
        assert not model.fault, model.traceback
        assert (
            model.facts is not None or [finding.code[:3] for finding in model.findings] == ["WL9"] * len(model.findings) != []
        )
        return model

    @staticmethod
    def confined(folder: Path) -> tuple[dict[str, Any], int]:
        """Checks a folder in a process with little memory and time: the report by file name, and the peak of memory in MB."""

        def confine() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        program = (
            "import resource, runpy, sys, atexit; "
            "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, file=sys.stderr)); "
            "sys.argv[0] = 'wirelint'; runpy.run_module('wirelint', run_name='__main__')"
        )
        command = [sys.executable, "-c", program, "check", "--no-config", "--quiet", "--output-format", "json", str(folder)]
        done = subprocess.run(command, env=environment, preexec_fn=confine, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), f"status {done.returncode}: {done.stderr[-2000:]}"
        report = json.loads(done.stdout)
        return {Path(model["path"]).name: model for model in report["models"]}, int(done.stderr.split()[-1])
