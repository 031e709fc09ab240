"""Checks every model in some folders and prints counts: status, rules, unmodelled operators, faults, the slowest files.

``--quiet-without-sequence`` also lists models that have no ids, mask or sequence and get an error or a warning all the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from wirelint.api import check
from wirelint.findings import ModelReport, Severity
from wirelint.inspection import guess_format

SEQUENCES = {
    "ids",
    "decoder_ids",
    "mask",
    "decoder_mask",
    "segment",
    "position",
    "encoder_states",
    "features",
    "pixel_mask",
    "lengths",
}
SHOWN = 15


def models_in(folders: list[Path]) -> list[Path]:
    """Files that could be models; a file is named, so that damaged ones are looked at too."""
    found = []
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
        found += [path for path in files if path.suffix.lower() in (".onnx", ".xml")]
    return found


def needlessly_loud(model: ModelReport) -> bool:
    """An error or a warning, not about the file, on a model without a sequence."""
    if model.facts is None or any(entry.role in SEQUENCES for entry in model.facts.inputs):
        return False
    return any(
        finding.severity in (Severity.ERROR, Severity.WARNING) and not finding.code.startswith("WL9")
        for finding in model.findings
    )


def listed(title: str, counter: Counter[str], most: int) -> None:
    if counter:
        print(f"\n{title}")
        for name, count in counter.most_common(most):
            print(f"  {count:6}  {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--quiet-without-sequence", action="store_true")
    parser.add_argument("--top", type=int, default=SHOWN, help="how many entries of each list [%(default)s]")
    asked = parser.parse_args()
    lists: dict[str, Counter[str]] = {name: Counter() for name in ("status", "findings", "unreadable", "stopped", "unmodelled")}
    slowest: list[tuple[float, Path]] = []
    faults, loud = [], []
    start = time.process_time()
    for path in models_in(asked.folders):
        began = time.process_time()
        report = check(path, config=False, only_models=True)
        slowest.append((time.process_time() - began, path))
        for model in report.models:
            lists["status"][f"{model.format or guess_format(model.path)}: {'fault' if model.fault else model.status}"] += 1
            if model.fault:
                faults.append(f"{path}: {model.fault}")
                continue
            lists["findings"].update(f"{finding.severity.value:8} {finding.code} {finding.rule}" for finding in model.findings)
            if model.facts is None:
                lists["unreadable"].update(finding.message[:100] for finding in model.findings)
            else:
                lists["unmodelled"].update(model.facts.unmodelled)
                if model.facts.stopped_at:
                    lists["stopped"][model.facts.stopped_at[-100:]] += 1
            if asked.quiet_without_sequence and needlessly_loud(model):
                loud.append(f"{path}: {', '.join(f'{finding.rule}: {finding.message}' for finding in model.findings)}")
        if not report.models:
            lists["status"]["passed over"] += 1
    seconds = time.process_time() - start
    print(f"{len(slowest)} files in {seconds:.1f} s of CPU time")
    for title, counter in lists.items():
        listed(title, counter, asked.top)
    print("\nslowest")
    for took, path in sorted(slowest, reverse=True)[:5]:
        print(f"  {took:6.2f}  {path}")
    for title, lines in (("faults of wirelint", faults), ("loud without a sequence", loud)):
        if lines:
            print(f"\n{title}: {len(lines)}")
            print("\n".join(f"  {line}" for line in lines))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
