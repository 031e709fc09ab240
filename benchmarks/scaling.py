"""How the time of a check grows with the number of nodes, over chains of plumbing from 1k to 1M nodes.

The exponent is the slope of log(CPU time beyond the start) over log(nodes) from one size to the next; the aim is 1.0.
"""

from __future__ import annotations

import math

from measure import built, by_turns, options, table, wirelint


def main() -> None:
    parser = options(__doc__, repeats=1)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000], help="sizes, of these")
    asked = parser.parse_args()
    names = {f"chain-{nodes}": nodes for nodes in asked.nodes}
    models = built(asked.folder, "small", *names)
    took = by_turns({name: wirelint("check", str(path)) for name, path in models.items()}, asked.repeats)
    start = took.pop("small").cpu
    rows, before = [], None
    for name, used in took.items():
        own = max(used.cpu - start, 1e-3)
        exponent = "" if before is None else f"{math.log(own / before[1]) / math.log(names[name] / before[0]):.2f}"
        rows.append([f"{names[name]:,}", *used.cells(), f"{1e6 * own / names[name]:.0f}", exponent])
        before = names[name], own
    table(["nodes", "wall s", "CPU s", "MB", "us per node", "exponent"], rows)


if __name__ == "__main__":
    main()
