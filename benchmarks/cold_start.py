"""How long wirelint takes to start, beside ``import onnx``.

Aims: ``wirelint --version`` under a third of that import, ``wirelint check`` of a small model within 2.5 times.
"""

from __future__ import annotations

import sys

from measure import built, by_turns, options, ratio, table, wirelint


def main() -> None:
    asked = options(__doc__, repeats=10).parse_args()
    small = str(built(asked.folder, "small")["small"])
    commands = {
        "python -c 'import onnx'": [sys.executable, "-c", "import onnx"],
        "python -c pass": [sys.executable, "-c", "pass"],
        "wirelint --version": wirelint("--version"),
        "wirelint check small.onnx": wirelint("check", small),
    }
    took = by_turns(commands, asked.repeats)
    yardstick = next(iter(took.values()))
    rows = [
        [name, *used.cells(), ratio(used.cpu, yardstick.cpu), ratio(used.wall, yardstick.wall)] for name, used in took.items()
    ]
    table(["command", "wall s", "CPU s", "MB", "CPU ratio", "wall ratio"], rows)


if __name__ == "__main__":
    main()
