"""What a full ``wirelint check`` takes on large transformers.

Aims, on one core: a 12-layer BERT-base well under 2 s, with a static length of 512 well under 5 s, a 7B decoder of 32 layers
well under 15 s in less than 500 MB.
"""

from __future__ import annotations

from measure import built, by_turns, options, table, wirelint

AIMS = {
    "bert-base": "< 2 s",
    "bert-base-512": "< 5 s",
    "bert-base-512-batch": "< 5 s",
    "decoder-7b-mha": "< 15 s, < 500 MB",
    "decoder-7b-gqa": "< 15 s, < 500 MB",
}


def main() -> None:
    asked = options(__doc__, repeats=3).parse_args()
    models = built(asked.folder, *AIMS)
    took = by_turns({name: wirelint("check", str(path)) for name, path in models.items()}, asked.repeats)
    table(["model", "wall s", "CPU s", "MB", "aim"], [[name, *used.cells(), AIMS[name]] for name, used in took.items()])


if __name__ == "__main__":
    main()
