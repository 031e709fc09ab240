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

__all__ = ["Feed", "Limits", "RunError", "Runner", "Worker", "require"]

_LONGEST_REASON = 300
# The folders to import from are given as an argument: '' among them would be the working folder, which holds models and
# whatever came with them.
_START = "import sys; sys.path[:] = sys.argv[1].split('\\n'); from wirelint.verify.worker import main; main()"


class RunError(Exception):
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


class Worker:
    """A process that runs models, one at a time; a context manager.

    After a crash, or a run that took too long, the next request starts a new one.  Nothing starts before it is needed.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.holds: object = None
        """Whose model the process has loaded."""
        self._process: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the worker

    def __enter__(self) -> Worker:  # noqa: PYI034 -- typing.Self is newer than Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.stop()
        self._said.close()

    def ask(self, header: dict[str, Any], arrays: Sequence[Array] = ()) -> Message:
        """The answer to a request.

        Raises:
            RunError: the runtime refuses, or the process crashes or takes too long.
        """
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
            self.stop()
            raise RunError(f"its process gave an answer that makes no sense ({error})") from None
        finally:
            timer.cancel()
        if answer is None:
            raise RunError(self._death(header["do"], late=late.is_set()))
        if not answer.header["ok"]:
            raise RunError(_one_line(answer.header["error"]))
        return answer

    def capabilities(self) -> list[str]:
        """What the CPU plugin of OpenVINO says that this machine can compute in."""
        return [str(entry) for entry in self.ask({"do": "capabilities"}).header["capabilities"]]

    def stop(self) -> None:
        """Ends the process; the next request starts another."""
        process, self._process = self._process, None
        self.holds = None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.kill()
        process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        folders = "\n".join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(  # noqa: S603 -- this interpreter, with arguments of our own
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
        self.stop()
        step = "loading" if doing == "open" else "running"
        if late:
            return f"{step} it took more than {self.limits.seconds:g} s"
        if status < 0:
            return f"{step} it crashed the runtime ({signal.Signals(-status).name})"
        self._said.seek(0)
        last = self._said.read()[-2000:].decode(errors="replace").strip().splitlines()
        return _one_line(f"{step} it ended the process with status {status}{': ' + last[-1] if last else ''}")


class Runner:
    """A model on one execution path.

    Attributes:
        outputs: names of the outputs that runs return, as the runtime calls them; empty before the first run.
    """

    def __init__(self, worker: Worker, model: str, path: Path, *, expose: Sequence[str] = ()) -> None:
        self.worker, self.path = worker, path
        self.model = os.path.abspath(model)  # noqa: PTH100 -- no link is followed
        self.outputs: list[str] = []
        self._expose = list(expose)
        self._shapes: list[tuple[int, ...]] | None = None

    def run(self, feeds: Sequence[Feed]) -> list[Array | None]:
        """The outputs for some inputs; None for one that holds no numbers.

        Raises:
            RunError: the runtime refuses, crashes or takes too long.
        """
        names = [feed.names for feed in feeds]
        shapes = [feed.array.shape for feed in feeds] if self.path.static else None
        if self.worker.holds is not self or shapes != self._shapes:
            self._open(names, shapes)
        return self.worker.ask({"do": "run", "names": names}, [feed.array for feed in feeds]).arrays

    def _open(self, names: list[tuple[str, ...]], shapes: list[tuple[int, ...]] | None) -> None:
        self.worker.holds = None
        request = {
            **self.path.as_dict(),
            "do": "open",
            "path": self.model,
            "expose": self._expose,
            "names": names,
            "shapes": shapes,
        }
        self.outputs = self.worker.ask(request).header["outputs"]
        self._shapes, self.worker.holds = shapes, self


def _one_line(text: str) -> str:
    first = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return printable(first, _LONGEST_REASON)
