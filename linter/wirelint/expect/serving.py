"""What serving configs say about a model's inputs and outputs, held against the graph's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.expect.genai import stands_for
from wirelint.facts import InputFacts, ModelFacts, OutputFacts
from wirelint.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirelint.expect.genai import Genai
    from wirelint.expect.triton import Port, Triton

__all__ = ["genai_mismatches", "triton_mismatches"]

_FED_BY_GENERATOR = frozenset({"ids", "decoder_ids", "mask", "decoder_mask", "segment", "position", "past", "encoder_states"})
_READ_BY_GENERATOR = frozenset({"logits", "present_key_names", "present_value_names", "present_names"})
_REFUSED = "the server refuses to load the model"


def triton_mismatches(config: Triton, facts: ModelFacts) -> Iterator[str]:
    """Names, element types and dimensions that ``config.pbtxt`` gives otherwise than the graph.

    A config that lists no inputs (or outputs) leaves them to the server, which then reads them from the model.
    """
    inputs = [entry for entry in facts.inputs if not entry.weight]
    if config.inputs:
        yield from _inputs(config, inputs)
    yield from _ports(config, config.inputs, inputs, "input")
    names = sorted(output.name for output in facts.outputs)
    for port in config.outputs:
        if port.name not in names:
            yield (
                f"{config.shown} lists output '{printable(port.name)}', which the graph does not have: {_REFUSED}; "
                f"write one of {_quoted(names)} there"
            )
    yield from _ports(config, config.outputs, facts.outputs, "output")


def _inputs(config: Triton, inputs: Sequence[InputFacts]) -> Iterator[str]:
    listed = {port.name for port in config.inputs} | config.provided
    unknown = [port.name for port in config.inputs if not any(port.name in _names(entry) for entry in inputs)]
    omitted = [entry for entry in inputs if not entry.has_default and not listed & _names(entry)]
    if len(unknown) == len(omitted) == 1:
        yield (
            f"{config.shown} calls input {omitted[0].index} '{printable(unknown[0])}', the graph calls it "
            f"'{omitted[0].name}': {_REFUSED}; write the graph's name there"
        )
        return
    for name in unknown:
        yield f"{config.shown} lists input '{printable(name)}', which the graph does not have: {_REFUSED}; remove it there"
    for entry in omitted:
        yield f"{config.shown} omits {entry.shown}, which the graph requires: {_REFUSED}; list it there"


def _ports(config: Triton, ports: Sequence[Port], entries: Sequence[InputFacts | OutputFacts], kind: str) -> Iterator[str]:
    """Element types and dimensions, for ports that both know by the same name."""
    for port in ports:
        entry = next((entry for entry in entries if port.name in _names(entry)), None)
        if entry is None:
            continue
        called = f"{kind} '{printable(port.name)}'"
        if port.dtype and entry.dtype not in ("unknown", port.dtype):
            says = f"{config.shown} says {called} is {port.dtype}, the graph says {entry.dtype}"
            yield f"{says}: {_REFUSED}; correct data_type there"
        if entry.shape is not None and port.dims and not port.ragged:
            yield from _dims(config, port, entry.shape, called)


def _dims(config: Triton, port: Port, shape: tuple[int | str | None, ...], called: str) -> Iterator[str]:
    """Dimensions that contradict each other; an open one on either side does not.

    Triton compares them as ``CompareDimsSupported`` in its backend library does: with ``max_batch_size`` the graph's first
    axis must be open.
    """
    wanted = (-1, *port.dims) if config.batches else port.dims
    sizes = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in shape)
    if config.batches and sizes and sizes[0] != -1:
        yield (
            f"{config.shown} sets max_batch_size, but the graph fixes the first axis of {called} at {sizes[0]}; export with a "
            "dynamic batch axis, or write max_batch_size: 0"
        )
        return
    if port.dims == (1,) and len(sizes) == len(wanted) - 1:
        # The server lets [batch, 1] stand for [batch], one value per row.
        return
    if len(sizes) != len(wanted) or any(-1 not in pair and pair[0] != pair[1] for pair in zip(sizes, wanted, strict=True)):
        after, rest = (" after the batch axis", shape[1:]) if config.batches else ("", shape)
        says = f"{config.shown} says {called} has dims {list(port.dims)}{after}, the graph says {_dims_of(rest)}"
        yield f"{says}; correct dims there"


def genai_mismatches(config: Genai, facts: ModelFacts) -> Iterator[str]:
    """Inputs that the generator would leave out, outputs that it would look for in vain, and caches of another size."""
    if not config.inputs:
        return
    for entry in facts.inputs:
        fed = any(config.feeds(name) for name in _names(entry))
        if entry.role in _FED_BY_GENERATOR and not entry.has_default and not entry.weight and not fed:
            says = f"{config.shown} names no input '{entry.name}', which the graph requires ({entry.role})"
            yield f"{says}: generation fails at the first step; name it there"
    names = [output.name for output in facts.outputs]
    for key, pattern in config.outputs.items():
        if key in _READ_BY_GENERATOR and not any(stands_for(pattern, name) for name in names):
            says = f"{config.shown} calls an output '{pattern}' ({key}), which the graph does not have"
            yield f"{says}; write what it has there: {_quoted(sorted(names))}"
    yield from _cache(config, facts)


def _cache(config: Genai, facts: ModelFacts) -> Iterator[str]:
    """The generator allots ``[batch, num_key_value_heads, length, head_size]`` for each layer."""
    pattern = config.inputs.get("past_key_names", "")
    keys = [entry for entry in facts.inputs if "%d" in pattern and stands_for(pattern, entry.name)]
    if keys and config.layers is not None and config.layers != len(keys):
        yield f"{config.shown} says num_hidden_layers {config.layers}, the graph caches {len(keys)} layers; correct it there"
    shape = keys[0].shape if keys else None
    if shape is None or len(shape) != 4:
        return
    for key, said, size in (("num_key_value_heads", config.heads, shape[1]), ("head_size", config.head_size, shape[3])):
        if said is not None and isinstance(size, int) and said != size:
            yield f"{config.shown} says {key} {said}, the graph caches {size} ('{keys[0].name}'); correct it there"


def _names(entry: InputFacts | OutputFacts) -> set[str]:
    return {entry.name, *entry.names} if isinstance(entry, InputFacts) else {entry.name}


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{printable(name, 60)}'" for name in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _dims_of(shape: tuple[int | str | None, ...]) -> str:
    return "[" + ", ".join(str(dim) if isinstance(dim, int) else "-1" for dim in shape) + "]"
