"""Writes files so that readers see the old one or the whole new one, and copies bytes without holding them in memory."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from wirelint.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Pending", "Piece", "Span", "pending"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of the source file that are copied as they are."""

    begin: int
    end: int


Piece = Span | bytes
"""A part of a new file: bytes of the old one, or others."""


@contextlib.contextmanager
def pending(*, force: bool) -> Iterator[Pending]:
    """Files that are written under temporary names; those that were not committed are removed in the end.

    Args:
        force: files that are there may be replaced.
    """
    files = Pending(force)
    try:
        yield files
    finally:
        files.discard()


@dataclass
class Pending:
    """Files that take their places together at :meth:`commit`; made by :func:`pending`."""

    force: bool
    _written: list[tuple[Path, Path]] = field(default_factory=list)

    def write(self, source: Path, pieces: Iterable[Piece], target: Path) -> Path:
        """Puts a file together from pieces of another.

        Returns:
            Where it is until :meth:`commit`.

        Raises:
            ConfigurationError: the target is there and may not be replaced, or can't be written.
        """
        if not self.force and (target.exists() or target.is_symlink()):
            raise ConfigurationError(f"{target}: is there already; --force overwrites it")
        try:
            with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as made:
                temporary = Path(made.name)
                self._written.append((temporary, target))
                with source.open("rb") as held:
                    for piece in pieces:
                        _put(held, piece, made)
                made.flush()
                os.fsync(made.fileno())
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        except OSError as error:
            raise ConfigurationError(f"{target}: can't be written: {error.strerror or error}") from None
        return temporary

    def copy(self, source: Path, target: Path) -> None:
        """Copies a file as it is; see :meth:`write`."""
        self.write(source, [Span(0, source.stat().st_size)], target)

    def commit(self) -> None:
        """Moves every file to its place, in the order in which they were written.

        Raises:
            ConfigurationError: one can't be moved.
        """
        while self._written:
            temporary, target = self._written[0]
            try:
                temporary.replace(target)
            except OSError as error:
                raise ConfigurationError(f"{target}: can't be written: {error.strerror or error}") from None
            del self._written[0]

    def discard(self) -> None:
        """Removes what was not committed."""
        for temporary, _ in self._written:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _put(source: IO[bytes], piece: Piece, target: IO[bytes]) -> None:
    if isinstance(piece, bytes):
        target.write(piece)
        return
    source.seek(piece.begin)
    left = piece.end - piece.begin
    while left > 0:
        chunk = source.read(min(left, _CHUNK))
        if not chunk:
            raise OSError("the source became shorter while it was copied")
        target.write(chunk)
        left -= len(chunk)
