"""Lowerings of control flow: If, Loop and Scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelint.dtypes import DType
from wirelint.formats.onnx.registry import lower
from wirelint.graph import Graph, Tensor, Value

if TYPE_CHECKING:
    from wirelint.formats.onnx.context import Node, TensorType

__all__: list[str] = []

_NUMBER: TensorType = (DType.I64, ())
_TRUTH: TensorType = (DType.BOOL, ())


@lower("If")
def _if(node: Node) -> None:
    branches = {"then": node.body("then_branch"), "else": node.body("else_branch")}
    for role, branch in branches.items():
        if len(branch.outputs) < len(node.outputs):
            raise node.fault(f"has {len(node.outputs)} results, its {role} branch yields {len(branch.outputs)}")
    for result, *candidates in zip(node.outputs, *(branch.outputs for branch in branches.values()), strict=False):
        if result.dtype is DType.UNKNOWN:
            result.dtype = next((value.dtype for value in candidates if value.dtype is not DType.UNKNOWN), DType.UNKNOWN)
    node.emit("If", [node.need(0)], bodies=branches)


@lower("Loop")
def _loop(node: Node) -> None:
    """Scan outputs are stacked along a new first axis."""
    carried = max(len(node.inputs) - 2, 0)
    # A state may change its shape from one iteration to the next.
    body = node.body("body", [_NUMBER, _TRUTH, *((dtype, None) for dtype, _ in map(_type, node.inputs[2:]))])
    if len(body.inputs) != carried + 2 or len(body.outputs) != len(node.outputs) + 1 or len(node.outputs) < carried:
        raise node.fault(f"carries {carried} states, its body takes {len(body.inputs)} and yields {len(body.outputs)} values")
    _take_types(node.outputs, body.outputs[1:])
    stacked = len(node.outputs) - carried
    node.emit("Loop", node.inputs, bodies={"body": body}, **_loop_attributes(carried, (), (), (0,) * stacked, (0,) * stacked))


@lower("Scan")
def _scan(node: Node) -> None:
    if node.version < 9:
        _batched_scan(node)
        return
    scanned = node.integer("num_scan_inputs", 0)
    carried = len(node.inputs) - scanned
    input_axes = node.integers("scan_input_axes", (0,) * scanned)
    slices = [_slice(operand, axis) for operand, axis in zip(node.inputs[max(carried, 0) :], input_axes, strict=False)]
    body = node.body("body", [*map(_type, node.inputs[: max(carried, 0)]), *slices])
    _check_scan(node, body, carried, len(node.inputs))
    _take_types(node.outputs, body.outputs)
    stacked = len(node.outputs) - carried
    attrs = _loop_attributes(
        carried,
        input_axes,
        node.integers("scan_input_directions", (0,) * scanned),
        node.integers("scan_output_axes", (0,) * stacked),
        node.integers("scan_output_directions", (0,) * stacked),
    )
    node.emit("Loop", [None, None, *node.inputs], bodies={"body": _as_loop_body(body)}, **attrs)


def _check_scan(node: Node, body: Graph, carried: int, operands: int) -> None:
    if not 0 <= carried <= min(operands, len(node.outputs)):
        raise node.fault(f"can't carry {carried} states")
    if len(body.inputs) != operands or len(body.outputs) != len(node.outputs):
        raise node.fault("and its body disagree about the number of inputs or results")


def _batched_scan(node: Node) -> None:
    """Scan of opset 8 runs its body for each row of the batch apart: a loop over rows around a loop over positions."""
    scanned = node.integer("num_scan_inputs", 0)
    operands = node.inputs[1:]
    carried = len(operands) - scanned
    rows_of = [_slice(operand, 0) for operand in operands]
    body = node.body("body", [*rows_of[: max(carried, 0)], *(_sliced(row, 0) for row in rows_of[max(carried, 0) :])])
    _check_scan(node, body, carried, len(operands))
    if node.operand(0) is not None:
        node.emit("Opaque", node.inputs)
        return
    _take_types(node.outputs, body.outputs)
    directions = node.integers("directions", (0,) * scanned)
    rows = [Value("", operand.dtype if operand is not None else DType.UNKNOWN) for operand in operands]
    inner_results = [Value("", value.dtype) for value in body.outputs]
    stacked = len(inner_results) - carried
    attrs = _loop_attributes(carried, (0,) * scanned, directions, (0,) * stacked, (0,) * stacked)
    inner = node.detached("Loop", [None, None, *rows], inner_results, {"body": _as_loop_body(body)}, **attrs)
    outer = _as_loop_body(Graph(body.name, list(rows), list(inner_results), [""] * len(inner_results), [inner]))
    count = len(node.outputs)
    attrs = _loop_attributes(0, (0,) * len(rows), (0,) * len(rows), (0,) * count, (0,) * count)
    node.emit("Loop", [None, None, *operands], bodies={"body": outer}, **attrs)


def _type(value: Value | None) -> TensorType:
    return (DType.UNKNOWN, None) if value is None else (value.dtype, value.shape)


def _slice(value: Value | None, axis: int) -> TensorType:
    """The type of what one iteration reads of a scan input."""
    return _sliced(_type(value), axis)


def _sliced(whole: TensorType, axis: int) -> TensorType:
    dtype, shape = whole
    if shape is None or not -len(shape) <= axis < len(shape):
        return dtype, None
    at = axis % len(shape)
    return dtype, shape[:at] + shape[at + 1 :]


def _loop_attributes(
    carried: int,
    input_axes: tuple[int, ...],
    input_directions: tuple[int, ...],
    output_axes: tuple[int, ...],
    output_directions: tuple[int, ...],
) -> dict[str, object]:
    return {
        "carried": carried,
        "keep_axis": False,
        "scan_input_axes": input_axes,
        "scan_input_directions": input_directions,
        "scan_output_axes": output_axes,
        "scan_output_directions": output_directions,
    }


def _as_loop_body(body: Graph) -> Graph:
    """The body of a Scan with the iteration number and the condition that a Loop's body has before its states."""
    forever = Tensor.of(True, DType.BOOL)
    body.inputs[:0] = [Value("", DType.I64, ()), Value("", DType.BOOL, ())]
    body.outputs.insert(0, Value("", DType.BOOL, (), constant=forever))
    body.output_names.insert(0, "")
    return body


def _take_types(results: list[Value], yielded: list[Value]) -> None:
    """Results without a declared type have that of the body's results."""
    for result, value in zip(results, yielded, strict=False):
        if result.dtype is DType.UNKNOWN:
            result.dtype = value.dtype
