"""The pre-commit hook, run by pre-commit in a git repository; the GitHub action's script; the GitLab template."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_models"
PROGRAM = f"{sys.executable} -m wirelint"

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def hooks() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return loaded


class Repository:
    """A git repository with the hook in its configuration, as this interpreter's wirelint."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        folder.mkdir()
        (hook,) = hooks()
        hook |= {"language": "system", "entry": hook["entry"].replace("wirelint", PROGRAM, 1)}
        config = {"repos": [{"repo": "local", "hooks": [hook]}]}
        (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        self.run("git", "init", "-q")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment = {**clean, "PRE_COMMIT_HOME": str(self.home), "GIT_CONFIG_GLOBAL": os.devnull}
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300, env=environment
        )

    def put(self, sample: str, name: str) -> None:
        target = self.folder / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(SAMPLES / sample, target)

    def commit_all(self) -> None:
        self.run("git", "add", "-A")
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        assert self.run("git", *identity, "commit", "-q", "--no-verify", "-m", "x").returncode == 0

    def check(self) -> tuple[int, str]:
        """Stages everything and runs the hook on what is staged."""
        self.run("git", "add", "-A")
        done = self.run(sys.executable, "-m", "pre_commit", "run", "--color", "never")
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    pytest.importorskip("pre_commit")
    return Repository(tmp_path / "repository", tmp_path / "home")


def test_pre_commit_accepts_the_manifest() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    assert [hook["id"] for hook in clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")] == ["wirelint"]


def test_a_broken_model_does_not_get_in(repository: Repository) -> None:
    repository.put("stories/classifier_mask_folded.onnx", "models/classifier.onnx")
    status, output = repository.check()
    assert status == 1
    assert "mask-folded" in output


def test_a_clean_model_and_other_files_do(repository: Repository) -> None:
    repository.put("clean/embedder.onnx", "models/embedder.onnx")
    (repository.folder / "pom.xml").write_text("<project/>")
    (repository.folder / "firmware.bin").write_bytes(b"\0" * 8)
    (repository.folder / "README.md").write_text("x")
    status, output = repository.check()
    assert (status, "Passed" in output) == (0, True), output


def test_a_commit_without_models_starts_nothing(repository: Repository) -> None:
    (repository.folder / "README.md").write_text("x")
    status, output = repository.check()
    assert (status, "no files to check" in output) == (0, True), output


def test_a_pointer_is_told(repository: Repository) -> None:
    repository.put("file/lfs_pointer.onnx", "model.onnx")
    status, output = repository.check()
    assert status == 1
    assert "lfs-pointer" in output


def test_changed_weights_stand_for_their_model(repository: Repository) -> None:
    for suffix in ("xml", "bin"):
        repository.put(f"stories/reranker_ov.{suffix}", f"model.{suffix}")
    repository.commit_all()
    with (repository.folder / "model.bin").open("ab") as weights:
        weights.write(b"\0")
    status, output = repository.check()
    assert status == 1
    assert "renamed-input" in output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.pbtxt", 'backend: "onnxruntime" input { name: "nobody" data_type: TYPE_FP32 dims: [ 1 ] }'),
        ("1/model.contract.yaml", "wirelint-contract: 1\ninputs: [{names: [nobody]}]\n"),
    ],
)
def test_a_changed_companion_stands_for_its_model(repository: Repository, name: str, text: str) -> None:
    (repository.folder / "served").mkdir()
    repository.put("clean/bert_classifier.onnx", "served/1/model.onnx")
    repository.commit_all()
    (repository.folder / "served" / name).write_text(text)
    (repository.folder / "config.json").write_text("{}")
    status, output = repository.check()
    assert status == 1, output
    assert "nobody" in output


def action_script() -> str:
    (script,) = [step["run"] for step in action()["runs"]["steps"] if step.get("name") == "Check models"]
    return str(script)


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


@pytest.mark.skipif(os.name == "nt", reason="needs bash")
@pytest.mark.parametrize("arguments", ["", "--fail-on=warning\n--quiet\n", "--fail-on=never\n--select=mask\n"])
def test_the_action_annotates_and_writes_sarif(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "two words").mkdir()
    shutil.copy(SAMPLES / "stories" / "classifier_mask_folded.onnx", tmp_path / "two words")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PATHS": "two words\n",
        "ARGUMENTS": arguments,
        "SARIF_FILE": "wirelint.sarif",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", action_script()], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if "never" in arguments else 1), done.stderr
    assert "::error" in done.stdout
    assert '"mask-folded"' in (tmp_path / "wirelint.sarif").read_text()


def test_the_action_uses_the_inputs_that_it_declares() -> None:
    text = (ROOT / "action.yml").read_text()
    for name in action()["inputs"]:
        assert f"inputs.{name}" in text
    assert "${{" not in action_script(), "an input inside a script is executed by the shell"


@pytest.mark.skipif(os.name == "nt", reason="needs bash")
def test_the_gitlab_template_reports_and_fails(tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / "docs" / "gitlab-ci.yml").read_text())["wirelint"]
    shutil.copy(SAMPLES / "stories" / "classifier_mask_folded.onnx", tmp_path)
    install, *checks = job["script"]
    assert "pip install" in install
    done = [
        subprocess.run(
            ["bash", "-c", line.replace("wirelint", PROGRAM, 1)],
            cwd=tmp_path,
            env={**os.environ, **job["variables"]},
            capture_output=True,
            text=True,
            check=False,
        )
        for line in checks
    ]
    assert [run.returncode for run in done] == [0, 1]
    assert "mask-folded" in (tmp_path / job["artifacts"]["reports"]["codequality"]).read_text()
