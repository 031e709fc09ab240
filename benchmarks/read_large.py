"""What reading and checking costs when the weights grow: the same graph with gigabytes of weights and with next to none.

Aims: at most 1.5 times the time, at most 100 MB more memory. ``onnx.load`` stands beside for comparison.
"""

from __future__ import annotations

import sys

from measure import built, by_turns, options, ratio, table, wirelint

PAIRS = {"ONNX in one file, 1.2 GB": "inline", "ONNX with external data, 14 GB": "external", "IR with a .bin of 1.2 GB": "ir"}
READ = "import sys, pathlib, wirelint.formats; wirelint.formats.load(pathlib.Path(sys.argv[1]))"
LOAD = "import sys, onnx; onnx.load(sys.argv[1], load_external_data=False)"


def main() -> None:
    asked = options(__doc__, repeats=3).parse_args()
    models = built(asked.folder, *(f"{name}-{size}" for name in PAIRS.values() for size in ("full", "empty")))
    commands = {}
    for name in PAIRS.values():
        for size in ("full", "empty"):
            path = str(models[f"{name}-{size}"])
            commands[f"{name}-{size}-read"] = [sys.executable, "-c", READ, path]
            commands[f"{name}-{size}-check"] = wirelint("check", path)
    commands["inline-full-load"] = [sys.executable, "-c", LOAD, str(models["inline-full"])]
    commands["inline-empty-load"] = [sys.executable, "-c", LOAD, str(models["inline-empty"])]
    took = by_turns(commands, asked.repeats)
    rows = []
    for what, name in PAIRS.items():
        for verb in ("read", "check", "load"):
            if f"{name}-full-{verb}" in took:
                full, empty = took[f"{name}-full-{verb}"], took[f"{name}-empty-{verb}"]
                called = "onnx.load" if verb == "load" else f"wirelint {verb}"
                more = f"{full.memory - empty.memory:+.0f}"
                rows.append([what, called, *full.cells(), *empty.cells(), ratio(full.cpu, empty.cpu), more])
    heads = ["model", "", "wall s", "CPU s", "MB", "empty: wall s", "CPU s", "MB", "CPU ratio", "MB more"]
    table(heads, rows)


if __name__ == "__main__":
    main()
