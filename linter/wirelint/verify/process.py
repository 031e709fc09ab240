"""Runs models in a process of their own, with limits on time and memory."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirelint.errors import ConfigurationError
from wirelint.printable import printable
from wirelint.verify.paths import RUNTIMES, Path
from wirelint.verify.protocol import Array, Message, read_message, write_message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

__all__ = ["Feed", "Limits", "RunFailed", "Runner", "require"]

_LONGEST_REASON = 300
# The folders to import from are given as an argument: '' among them would be the working folder, which holds models and
# whatever came with them.
_START = "import sys; sys.path[:] = sys.argv[1].split('\\n'); from wirelint.verify.worker import main; main()"


class RunFailed(Exception):
    """A model can't be loaded or run, or takes too long; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What running may cost.

    Attributes:
        seconds: for loading, and for each run.
        memory: bytes.
    """

    seconds: float = 120.0
    memory: int = 8 << 30


@dataclass(frozen=True, slots=True)
class Feed:
    """What is fed to one input.

    Attributes:
        names: every name by which a runtime may know it; may be empty for IR.
        role: of the input.
        array: the numbers.
    """

    names: tuple[str, ...]
    role: str
    array: Array


def require(runtime: str) -> None:
    """Makes sure that a runtime is installed.

    Raises:
        ConfigurationError: it is not.
    """
    if importlib.util.find_spec(runtime) is None:
        raise ConfigurationError(f'{RUNTIMES[runtime]} is not installed; get it with: pip install "wirelint[runtime]"')


class Runner:
    """A model on one execution path, in a process of its own; a context manager.

    After a crash or a run that took too long, the next run starts a new process.

    Attributes:
        outputs: names of the outputs that runs return, as the runtime calls them.

    Raises:
        RunFailed: from :meth:`open` and :meth:`run`.
    """

    def __init__(self, model: str, path: Path, limits: Limits, *, expose: Sequence[str] = ()) -> None:
        self.model, self.path, self.limits = os.path.abspath(model), path, limits  # noqa: PTH100 -- no link is followed
        self.outputs: list[str] = []
        self._expose = list(expose)
        self._shapes: list[tuple[int, ...]] | None = None
        self._opened: list[tuple[int, ...]] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the runner

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._stop()
        self._said.close()

    def capabilities(self) -> list[str]:
        """What the CPU plugin of OpenVINO says that this machine can compute in."""
        return [str(entry) for entry in self._ask({"do": "capabilities"}, []).header["capabilities"]]

    def open(self, shapes: Sequence[tuple[int, ...]] | None = None) -> None:
        """Loads the model.

        Args:
            shapes: of the inputs, for a path with static shapes.
        """
        self.outputs = []
        request = {**self.path.as_dict(), "do": "open", "path": self.model, "expose": self._expose, "shapes": shapes}
        self.outputs = self._ask(request, []).header["outputs"]

    def run(self, feeds: Sequence[Feed]) -> list[Array | None]:
        """The outputs for some inputs; None for one that holds no numbers."""
        shapes = [feed.array.shape for feed in feeds] if self.path.static else None
        if self._process is None or not self.outputs or shapes != self._opened:
            self.open(shapes)
            self._opened = shapes
        answer = self._ask({"do": "run", "names": [feed.names for feed in feeds]}, [feed.array for feed in feeds])
        return answer.arrays

    def _ask(self, header: dict[str, Any], arrays: list[Array]) -> Message:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def expire() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.limits.seconds, expire)
        timer.start()
        answer: Message | None = None
        try:
            with contextlib.suppress(OSError):  # it is gone: the end of its answers says so too
                write_message(process.stdin, Message(header, list(arrays)))
            answer = read_message(process.stdout)
        except ValueError as error:
            self._stop()
            raise RunFailed(f"its process gave an answer that makes no sense ({error})") from None
        finally:
            timer.cancel()
        if answer is None:
            raise RunFailed(self._death(header["do"], late=late.is_set()))
        if not answer.header["ok"]:
            raise RunFailed(_one_line(answer.header["error"]))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        folders = "\n".join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, folders, str(self.limits.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        return self._process

    def _death(self, doing: str, *, late: bool) -> str:
        """Why the process is gone, in words."""
        process = self._process
        assert process is not None
        status = process.wait()
        self._stop()
        step = "loading" if doing == "open" else "running"
        if late:
            return f"{step} it took more than {self.limits.seconds:g} s"
        if status < 0:
            return f"{step} it crashed {RUNTIMES[self.path.runtime]} ({signal.Signals(-status).name})"
        self._said.seek(0)
        last = self._said.read()[-2000:].decode(errors="replace").strip().splitlines()
        return _one_line(f"{step} it ended the process with status {status}{': ' + last[-1] if last else ''}")

    def _stop(self) -> None:
        process, self._process = self._process, None
        self._opened, self.outputs = None, []
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.kill()
        process.wait()


def _one_line(text: str) -> str:
    first = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return printable(first, _LONGEST_REASON)
