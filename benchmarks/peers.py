"""Wirelint's full check beside other tools that read ONNX models, on the same files in one run.

The peers are run as their users run them, each in a process of its own. Those that are not installed are left out; to have
``polygraphy`` and ``onnx-doctor``, install them into an environment of their own and name its interpreter with ``--python``.
"""

from __future__ import annotations

import subprocess
import sys

from measure import built, by_turns, options, table, wirelint

MODELS = {"small": "small, 0.2 MB", "bert-base": "BERT-base, 0.4 GB external", "inline-full": "24 layers, 1.2 GB in one file"}
CHECKER = "import sys, onnx.checker; onnx.checker.check_model(sys.argv[1], full_check={full})"
INFERENCE = "import sys, onnx.shape_inference as s; s.infer_shapes_path(sys.argv[1], sys.argv[2], data_prop=True)"
POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"


def has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = options(__doc__, repeats=2)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has polygraphy and onnx-doctor [this one]")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    asked = parser.parse_args()
    scratch = str(asked.folder / "inferred.onnx")
    paths = built(asked.folder, *asked.models)
    peers = {
        "onnx.load (parse alone)": lambda path: [sys.executable, "-c", "import sys, onnx; onnx.load(sys.argv[1])", path],
        "onnx.checker": lambda path: [sys.executable, "-c", CHECKER.format(full=False), path],
        "onnx.checker, full": lambda path: [sys.executable, "-c", CHECKER.format(full=True), path],
        "onnx.shape_inference": lambda path: [sys.executable, "-c", INFERENCE, path, scratch],
    }
    if has(asked.python, "polygraphy"):
        peers["polygraphy check lint"] = lambda path: [asked.python, "-c", POLYGRAPHY, "check", "lint", path]
    if has(asked.python, "onnx_doctor"):
        peers["onnx-doctor check"] = lambda path: [asked.python, "-m", "onnx_doctor", "check", path]
    peers["wirelint check"] = lambda path: wirelint("check", path)
    commands = {f"{model}/{peer}": make(str(path)) for model, path in paths.items() for peer, make in peers.items()}
    took = by_turns(commands, asked.repeats)
    rows = [[MODELS[name.split("/")[0]], name.split("/")[1], *used.cells(), str(used.status)] for name, used in took.items()]
    table(["model", "tool", "wall s", "CPU s", "MB", "status"], rows)


if __name__ == "__main__":
    main()
