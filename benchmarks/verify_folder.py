"""Holds every static verdict of a folder of models against what running shows.

    python benchmarks/verify_folder.py sample_models
    python benchmarks/verify_folder.py DIR --json out.json

Prints what was refuted, what could not be measured and why, and the counts; exits with 1 when a verdict was refuted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from wirelint.discovery import discover
from wirelint.errors import WirelintError
from wirelint.verify import Limits, Status, Verification, Worker, verify


def verified(paths: list[str], seed: int) -> tuple[list[Verification], dict[str, str]]:
    """Each model, and for those that can't be read the reason."""
    found, unread = [], {}
    with Worker(Limits()) as worker:
        for path in paths:
            try:
                found.append(verify(path, worker=worker, seed=seed))
            except WirelintError as error:  # noqa: PERF203 -- one damaged file does not keep the others from being measured
                unread[path] = str(error)
    return found, unread


def report(found: list[Verification], unread: dict[str, str]) -> Counter[Status]:
    for made in found:
        if made.stopped:
            print(f"not run    {made.path}: {made.stopped}")
        for claim in made.with_status(Status.REFUTED):
            print(f"REFUTED    {made.path}: {claim.question} of {claim.output}: {claim.verdict}: {claim.measured}")
    for path, reason in unread.items():
        print(f"not read   {path}: {reason}")
    why = Counter(claim.measured.split(":")[0] for made in found for claim in made.with_status(Status.NOT_MEASURABLE))
    for reason, number in why.most_common():
        print(f"{number:5d} not measurable: {reason}")
    return Counter(claim.status for made in found for claim in made.claims)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="models and folders of models")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--json", type=Path, help="write the counts there")
    options = parser.parse_args()
    start = time.perf_counter()
    models = discover(options.paths, lambda _: True, only_models=True).models
    found, unread = verified(models, options.seed)
    counts = report(found, unread)
    seconds = time.perf_counter() - start
    by_question = Counter((claim.question, claim.verdict, claim.status.value) for made in found for claim in made.claims)
    for (question, verdict, status), number in sorted(by_question.items()):
        print(f"{number:5d} {question:14s} {verdict:14s} {status}")
    print(f"{', '.join(f'{counts[status]} {status}' for status in Status)} in {len(found)} models ({seconds:.0f} s)")
    if options.json:
        numbers = {status.value: counts[status] for status in Status}
        options.json.write_text(json.dumps({**numbers, "models": len(found), "seconds": round(seconds, 1)}, indent=2) + "\n")
    return 1 if counts[Status.REFUTED] else 0


if __name__ == "__main__":
    sys.exit(main())
