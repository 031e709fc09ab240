"""Feeds wirelint models that a coverage-guided fuzzer makes, until something else than a report comes out.

    pip install atheris
    python benchmarks/fuzz_guided.py -max_total_time=600

Options are libFuzzer's. It begins with the small sample models, looks for bytes that reach code not reached before, and keeps
what fails as ``crash-*`` in the working directory. ``fuzz.py`` damages the structure of models instead, and needs no fuzzer.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

# What is imported later, on first use, would not be watched.
with atheris.instrument_imports(include=["wirelint"]):
    import wirelint.analysis
    import wirelint.formats.onnx
    import wirelint.formats.openvino  # noqa: F401
    from wirelint.api import check

SAMPLES = Path(__file__).resolve().parent.parent / "sample_models"
LARGEST = 1 << 15


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "corpus"
        corpus.mkdir()
        for number, path in enumerate(sorted(SAMPLES.rglob("*"))):
            if path.suffix in (".onnx", ".xml") and path.stat().st_size <= LARGEST:
                shutil.copyfile(path, corpus / f"{number}{path.suffix}")

        def reports(data: bytes) -> None:
            path = Path(scratch) / ("candidate.xml" if data.lstrip()[:1] == b"<" else "candidate.onnx")
            path.write_bytes(data)
            for model in check(path, config=False).models:
                assert not model.fault, model.traceback

        atheris.Setup([sys.argv[0], "-timeout=60", "-rss_limit_mb=4096", *sys.argv[1:], str(corpus)], reports)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
