"""Files as they lie about: the real readers behind the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a2146' * 8}\nsize 12345\n"


def check(folder: Path, *arguments: str) -> tuple[dict[str, Any], str, int]:
    """The report, what stood on standard error, and the exit status."""
    done = subprocess.run(
        [sys.executable, "-m", "wirelint", "check", "-f", "json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.stderr, done.returncode


def test_damaged_files_get_one_clear_finding_each(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "text.onnx").write_text("hello\n")
    (tmp_path / "zipped.onnx").write_bytes(b"PK\x03\x04" + bytes(60))
    (tmp_path / "random.onnx").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "pointer.onnx").write_text(POINTER)
    (tmp_path / "pointer.xml").write_text(POINTER)
    (tmp_path / "cut.xml").write_text('<?xml version="1.0"?>\n<net name="m" version="11">\n  <layers>\n')
    (tmp_path / "pom.xml").write_text("<project/>")
    document, stderr, status = check(tmp_path, ".")
    found = {model["path"]: [finding["rule"] for finding in model["findings"]] for model in document["models"]}
    assert found == {
        "./cut.xml": ["unreadable"],
        "./empty.onnx": ["unreadable"],
        "./pointer.onnx": ["lfs-pointer"],
        "./pointer.xml": ["lfs-pointer"],
        "./random.onnx": ["unreadable"],
        "./text.onnx": ["unreadable"],
        "./zipped.onnx": ["unreadable"],
    }
    assert {model["status"] for model in document["models"]} == {"unreadable"}
    assert (stderr, status) == ("", 1)
    assert [entry["path"] for entry in document["summary"]["passed_over"]] == ["./pom.xml"]


def test_a_named_xml_that_is_no_model_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "pom.xml").write_text("<project/>")
    document, _, status = check(tmp_path, "pom.xml")
    assert "no OpenVINO IR" in document["models"][0]["findings"][0]["message"]
    assert status == 1


def test_several_processes_agree(tmp_path: Path) -> None:
    for index in range(5):
        (tmp_path / f"{index}.onnx").write_bytes(b"\xff" * index)
    one, several = (check(tmp_path, ".", "--jobs", jobs)[0]["models"] for jobs in ("1", "3"))
    for model in (*one, *several):
        del model["seconds"]
    assert one == several
