"""Build the sample models, run each of them, and write expected.yaml.

    python sample_models/build.py                    # all
    python sample_models/build.py bert_qa stories/   # those whose path contains a word given

Needs the `samples` extra. Weights are random and seeded: a rebuild on the same versions gives the same files.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from builders import manifest, scrub, verify  # noqa: E402
from builders.registry import SAMPLES, Sample  # noqa: E402
from builders.topics import TOPICS  # noqa: E402

LARGEST_FILE, LARGEST_TOTAL = 200_000, 10_000_000
SOURCES = {".py", ".yaml", ".pyc", ".md"}


def committed() -> list[Path]:
    """Every file that is not source."""
    return sorted(path for path in HERE.rglob("*") if path.is_file() and path.suffix not in SOURCES)


def build(sample: Sample) -> object:
    """Write one sample and measure it."""
    target = HERE / sample.path
    target.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    sample.build(target)
    truth = verify.measure(sample, target)
    if truth is not None and not sample.must:
        verify.assert_clean(sample, truth)
    print(f"{sample.path:60s} {target.stat().st_size / 1000:6.0f} kB  {time.perf_counter() - start:5.1f} s", flush=True)
    return truth


def check_files() -> None:
    """Sizes stay small, and no file names a path of this machine."""
    files = committed()
    for file in files:
        scrub.assert_clean(file)
        assert file.stat().st_size < LARGEST_FILE, f"{file} has {file.stat().st_size} bytes"
    total = sum(file.stat().st_size for file in files)
    assert total < LARGEST_TOTAL, f"{total} bytes in all"
    print(f"{len(files)} files, {total / 1e6:.2f} MB")


def main(words: list[str]) -> int:
    torch.set_num_threads(1)
    wanted = [sample for sample in SAMPLES.values() if not words or any(word in sample.path for word in words)]
    if not wanted:
        print(f"no sample's path contains {' or '.join(words)}; topics: {', '.join(TOPICS)}", file=sys.stderr)
        return 2
    expected = HERE / "expected.yaml"
    truths = manifest.read(expected)
    for sample in wanted:
        truths[sample.path] = build(sample)
    manifest.write(expected, truths)
    check_files()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
