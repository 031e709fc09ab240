"""Mends in a model file what can be mended there: names of inputs, and defaults that make a needed input optional.

Weights are never touched: they are copied byte for byte, and so is everything else that does not hold a changed name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wirelint.errors import ConfigurationError, ModelFileError, NotAModelError
from wirelint.fix.advice import Advice, advice_for
from wirelint.fix.plan import Plan, Rename, plan_for
from wirelint.fix.writing import Pending, pending

__all__ = ["Advice", "Fixed", "Plan", "Rename", "fix", "plan_for"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a file.

    Attributes:
        plan: what was changed, or would be.
        advice: what to do about the rest.
        written: the new file is in its place.
    """

    plan: Plan
    advice: Advice
    written: bool


def fix(model: PathLike, out: PathLike | None, *, force: bool = False) -> Fixed:
    """Writes a mended copy of a model.

    Args:
        model: an ONNX model or the XML of an IR.
        out: where the copy goes, with its ``.bin`` or external data if its folder is another one; it may be the model itself.
            None to find out only what would be changed.
        force: files that are there may be replaced.

    Returns:
        What was changed; nothing is written when there is nothing to change.

    Raises:
        ConfigurationError: a file is there already or can't be written, or the contract beside the model is wrong.
        ModelFileError, NotAModelError: the model can't be read.
        OSError: likewise.
    """
    from wirelint.api import facts

    source = Path(model)
    found = facts(source)
    plan = plan_for(found)
    if found.format == "openvino-ir":
        from wirelint.fix.ir_file import refusals
    else:
        from wirelint.fix.onnx_file import refusals
    plan = plan.without(refusals(source, plan))
    advice = advice_for(found, plan)
    if out is not None:
        _refuse_target(found.format, Path(out))
    if out is None or plan.empty:
        return Fixed(plan, advice, written=False)
    with pending(force=force) as files:
        write = _write_ir if found.format == "openvino-ir" else _write_onnx
        made = write(source, plan, Path(out), files)
        _verify(made, source, plan, Path(out))
        files.commit()
    return Fixed(plan, advice, written=True)


def _refuse_target(form: str, out: Path) -> None:
    """Raises for a place where the copy would not be taken for what it is."""
    if str(out) == "-":
        raise ConfigurationError("-: a model is not written to standard output; name a file")
    if out.is_dir():
        raise ConfigurationError(f"{out}: is a folder; name a file in it")
    if form == "openvino-ir" and out.suffix.lower() != ".xml":
        raise ConfigurationError(f"{out}: the name of an IR must end in .xml, as its weights are looked for by it")
    if form == "onnx" and out.suffix.lower() in (".xml", ".bin"):
        raise ConfigurationError(f"{out}: an ONNX model stays one; choose a name that ends in .onnx")


def _write_onnx(source: Path, plan: Plan, out: Path, files: Pending) -> Path:
    """The model, and its external data where they would not be found from its new place."""
    from wirelint.fix.onnx_file import external_files, pieces_of
    from wirelint.formats.onnx.external import ExternalFiles

    if not _same(source.parent, out.parent):
        data = ExternalFiles(source)
        for location in external_files(source):
            located = data.locate(location, location)
            if located is None:
                raise ConfigurationError(f"{source}: {data.problems()[0].message}; or write the copy beside the model")
            target = out.parent / location
            if not _same(located[0], target):
                target.parent.mkdir(parents=True, exist_ok=True)
                files.copy(located[0], target)
    return files.write(source, pieces_of(source, plan), out)


def _write_ir(source: Path, plan: Plan, out: Path, files: Pending) -> Path:
    """The XML, and the weights under its new name; weights go first, so that no XML stands without them."""
    from wirelint.fix.ir_file import pieces_of

    weights, target = source.with_suffix(".bin"), out.with_suffix(".bin")
    if weights.is_file() and not _same(weights, target):
        files.copy(weights, target)
    return files.write(source, pieces_of(source, plan), out)


def _same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False


def _verify(made: Path, source: Path, plan: Plan, out: Path) -> None:
    """The copy must be a model that takes the same inputs under the planned names.

    Raises:
        ConfigurationError: it does not; nothing is put into place.
    """
    from wirelint.formats import load

    try:
        before, after = load(source).graph.inputs, load(made).graph.inputs
    except (ModelFileError, NotAModelError) as error:
        raise ConfigurationError(f"{out}: the mended copy can't be read, so nothing was written ({error})") from error
    renamed = {entry.index: entry.new for entry in plan.renames}
    wanted = [renamed.get(index, value.name) for index, value in enumerate(before)]
    optional = any(new.default is not None for old, new in zip(before, after, strict=False) if old.name in plan.required)
    if [value.name for value in after] != wanted or optional:
        raise ConfigurationError(f"{out}: the mended copy does not have the planned inputs, so nothing was written")
