"""Feeds damaged models to wirelint until time is up, and keeps every one that it stumbles over.

Samples are damaged as bytes and in their structure (see ``tests/robustness/mutations.py``). A stumble is anything but a report:
an exception, a fault of wirelint itself, a run that takes too long or too much memory. The same seed gives the same models.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "robustness"))

import onnx  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402
from lxml import etree  # noqa: E402
from mutations import mutated_bytes, mutated_model, mutated_xml  # noqa: E402

from wirelint.api import check  # noqa: E402
from wirelint.report import FORMATS, RenderOptions, renderer  # noqa: E402


def damaged(samples: list[Path], random: Random) -> Iterator[tuple[Path, bytes]]:
    """Damaged models without end: what each was made from, and its bytes."""
    while True:
        path = random.choice(samples)
        whole = path.read_bytes()
        try:
            if random.random() < 0.3:
                yield path, mutated_bytes(whole, random)
            elif path.suffix == ".onnx":
                yield path, mutated_model(onnx.load_from_string(whole), random).SerializeToString()
            else:
                yield path, mutated_xml(whole, random)
        except (DecodeError, TypeError, ValueError, etree.XMLSyntaxError):
            continue  # a sample that is damaged already, or something that protobuf itself refuses to write


def stumble(path: Path, seconds: float) -> tuple[str, str]:
    """What wirelint stumbles over in a file, and where; empty for a clean report."""
    start = time.process_time()
    try:
        report = check(path, config=False)
        for name in FORMATS:
            renderer(name)(report, RenderOptions())
    except Exception as error:  # noqa: BLE001 -- to find out what comes out is what this is for
        return f"{type(error).__name__}: {error}"[:100], traceback.format_exc()
    for model in report.models:
        if model.fault:
            return model.fault[:100], model.traceback
    took = time.process_time() - start
    return (f"took more than {seconds} s", f"{took:.1f} s") if took > seconds else ("", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--samples", type=Path, default=HERE.parent / "sample_models", help="a folder with models [%(default)s]"
    )
    parser.add_argument("--keep", type=Path, default=Path("fuzz-stumbles"), help="where to keep what fails [%(default)s]")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=1 << 20, help="leave out larger samples [%(default)s bytes]")
    parser.add_argument("--seconds", type=float, default=10, help="CPU time that one model may take [%(default)s]")
    parser.add_argument("--memory", type=int, default=2048, help="address space in MB [%(default)s]")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (asked.memory << 20, asked.memory << 20))
    samples = sorted(path for path in asked.samples.rglob("*") if path.suffix in (".onnx", ".xml"))
    samples = [path for path in samples if path.stat().st_size <= asked.largest]
    asked.keep.mkdir(parents=True, exist_ok=True)
    seen: Counter[str] = Counter()
    count, until = 0, time.monotonic() + 60 * asked.minutes
    for sample, content in damaged(samples, Random(asked.seed)):
        if time.monotonic() > until:
            break
        count += 1
        path = asked.keep / f"candidate{sample.suffix}"
        path.write_bytes(content)
        if sample.suffix == ".xml" and sample.with_suffix(".bin").exists():
            shutil.copyfile(sample.with_suffix(".bin"), path.with_suffix(".bin"))
        what, where = stumble(path, asked.seconds)
        if what:
            place = where.strip().splitlines()[-3:-1]
            key = f"{what} at {place[0].strip() if place else ''}"
            seen[key] += 1
            if seen[key] == 1:
                kept = path.rename(asked.keep / f"stumble-{len(seen)}{sample.suffix}")
                print(f"{kept}: {key}\n{where}", flush=True)
    print(f"{count} models, {sum(seen.values())} stumbles of {len(seen)} kinds")
    for key, times in seen.most_common():
        print(f"  {times:6}  {key}")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
