"""Executes a graph on shadows.

Operators run in the graph's order; what a runtime would refuse stops the run and is a result in itself.  The work is
bounded by a budget of touched elements, not by a clock, so that the same file always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wirelint.dtypes import DType
from wirelint.errors import ModelFileError
from wirelint.graph import Graph, Op, Value
from wirelint.ops import VOCABULARY, Family, family
from wirelint.shadow.labels import COUNT, ROUTED, UNMODELLED, Layout
from wirelint.shadow.transfer import REGISTRY, Context
from wirelint.shadow.transfer.elementwise import either
from wirelint.shadow.transfer.movement import expand
from wirelint.shadow.value import HUGE, DataDependentError, ExecutionError, Shadow, present

__all__ = ["BudgetError", "Constants", "Run", "Stop", "run"]

DEFAULT_BUDGET = 4_000_000_000
"""Elements that one run may touch."""

_STEP, _STEP_IN_BODY = 16, 40_000
"""What a step costs beside its elements.  Those of the main graph are as many as the file has; those of loops multiply."""

_MOST_AT_ONCE = 1 << 26
"""Elements that one operator may touch: half a gigabyte of labels."""

_KEPT_BYTES = 160 << 20
"""Labels of intermediate values that are kept for the search of witnesses."""

_ASSUMED = ROUTED | COUNT

_DEEPEST = 48
"""Nested subgraphs."""

_SMALL = 1 << 16
_LARGE = 1 << 24
_LAYOUT_STEPS = 3  # a compressed weight is cast, reshaped and transposed
_WEIGHTS = {Family.CONTRACT, Family.NORMALISE, Family.RECURRENT, Family.ATTENTION, Family.QUANTISE}


class BudgetError(Exception):
    """The work budget of a run is used up."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run did not come to the end.

    Attributes:
        op: the operator at which it stopped.
        reason: one line.
        refused: a runtime would refuse as well; otherwise the shadow run only does not know enough.
        sizes: dimensions that the operator would have accepted.
    """

    op: Op
    reason: str
    refused: bool
    sizes: tuple[int, ...] = ()


@dataclass(slots=True)
class Run:
    """What a shadow run found.

    Attributes:
        values: the shadow of each value that was computed; intermediate ones without their numbers, and some of a large
            graph not at all.
        observed: shadows inside operators: ``scores`` and ``weights`` of attention, operands of watched operators.
        unmodelled: operators without a transfer function that were met.
        stop: why the run did not come to the end, or None.
    """

    values: dict[Value, Shadow] = field(default_factory=dict)
    observed: dict[Op, dict[str, Shadow]] = field(default_factory=dict)
    unmodelled: dict[Op, None] = field(default_factory=dict)
    stop: Stop | None = None


def _is_weight(value: Value) -> bool:
    """Some operator multiplies with a constant or looks rows up in it, perhaps after a change of dtype or layout."""
    frontier = [value]
    for _ in range(_LAYOUT_STEPS):
        uses = [use for held in frontier for use in held.consumers]
        if any(family(op.kind) in _WEIGHTS or (family(op.kind) is Family.LOOKUP and not slot) for op, slot in uses):
            return True
        frontier = [made for op, slot in uses if family(op.kind) is Family.MOVE and not slot for made in op.outputs]
    return False


class Constants:
    """The shadows of a graph's constants, made once and shared by all runs.

    Weights are never read.  A constant is, when it is an integer or a truth value (shapes, indices, masks), a single number,
    or a floating tensor that is used as a mask would be; and of those tensors only the ones that do mask: that hold hugely
    negative numbers, or the same number everywhere.
    """

    def __init__(self) -> None:
        self._made: dict[Value, Shadow] = {}

    def shadow(self, value: Value) -> Shadow:
        """The shadow of a constant."""
        made = self._made.get(value)
        if made is None:
            made = self._made[value] = self._load(value)
        return made

    def _load(self, value: Value) -> Shadow:
        tensor = value.constant
        assert tensor is not None
        try:
            held = tensor.load(self._limit(value))
        except ModelFileError:
            held = None  # reported as a problem of the file
        if held is None or tensor.dtype in (DType.STRING, DType.UNKNOWN) or held.dtype.kind == "c":
            return Shadow.unknown(tensor.shape, tensor.dtype)
        if held.size > 1 and (held == held.flat[0]).all():
            return expand(Shadow.known(held.reshape(-1)[:1], tensor.dtype), tensor.shape)
        if tensor.dtype.is_float and held.size > 1 and not self._resizes(value):
            with np.errstate(all="ignore"):
                telling = not (np.abs(held.astype(np.float64)) < HUGE).all()
            if not telling:
                return Shadow.unknown(tensor.shape, tensor.dtype)
        return Shadow.known(held, tensor.dtype)

    @staticmethod
    def _resizes(value: Value) -> bool:
        """It gives the scales of a Resize: floating numbers, but a matter of shape."""
        return any(op.kind == "Resize" and slot for op, slot in value.consumers)

    @classmethod
    def _limit(cls, value: Value) -> int:
        """How many elements a constant may have to be read."""
        tensor = value.constant
        assert tensor is not None
        if cls._resizes(value):
            return _SMALL
        rank = len(tensor.shape)
        if not tensor.dtype.is_float:
            # Eight bits or less in a matrix are a quantised weight; old causal masks of bytes are square and of rank 4.
            narrow = tensor.dtype is not DType.BOOL and tensor.dtype.bits <= 8
            return 1 if narrow and rank >= 2 and not (rank == 4 and tensor.shape[-1] == tensor.shape[-2]) else _LARGE
        if rank < 2:
            return 1
        if _is_weight(value):
            return 1
        return _LARGE if tensor.shape[-1] == tensor.shape[-2] else _SMALL


@dataclass(slots=True)
class _Machine:
    layout: Layout
    length: int | None
    symbols: Mapping[str, int]
    constants: Constants
    watch: Collection[Op]
    budget: int
    result: Run = field(default_factory=Run)
    depth: int = 0
    kept: int = 0
    reading: dict[Value, int] = field(default_factory=dict)
    current: Op | None = None

    def charge(self, elements: int) -> None:
        self.budget -= elements
        if self.budget < 0 or elements > _MOST_AT_ONCE:
            raise BudgetError

    def observe(self, name: str, shadow: Shadow) -> None:
        """Keeps what is seen inside the current operator; what the iterations of a loop show is joined, so that one in which
        padding is heard counts.  Of shapes that change from one to the next, the last is kept.
        """
        if self.current is None:
            return
        seen = self.result.observed.setdefault(self.current, {})
        before = seen.get(name) if self.depth else None
        if before is not None and before.shape == shadow.shape and before.dtype is shadow.dtype:
            shadow = either(before, shadow)
        seen[name] = shadow

    def lookup(self, value: Value) -> Shadow:
        made = self.result.values.get(value)
        if made is not None:
            return made
        if value.constant is not None:
            return self.constants.shadow(value)
        raise DataDependentError(f"'{value.name}' was not computed")

    def run_graph(self, graph: Graph, context: Context) -> None:
        for op in graph.ops:
            for value in op.inputs:
                if value is not None:
                    self.reading[value] = self.reading.get(value, 0) + 1
        for op in graph.ops:
            self.step(op, context)
            if not self.depth:
                self.release(op)

    def run_body(self, graph: Graph, inputs: Sequence[Shadow], context: Context) -> list[Shadow]:
        if self.depth >= _DEEPEST:
            raise DataDependentError("subgraphs are nested too deeply")
        self.depth += 1
        outer = self.current
        try:
            for value, shadow in zip(graph.inputs, inputs, strict=False):
                self.result.values[value] = shadow
            self.run_graph(graph, context)
            return [self.lookup(value) for value in graph.outputs]
        finally:
            self.depth -= 1
            self.current = outer

    def step(self, op: Op, context: Context) -> None:
        operands = [None if value is None else self.lookup(value) for value in op.inputs]
        self.charge(_STEP_IN_BODY if self.depth else _STEP)
        self.current = op
        function = REGISTRY.get(op.kind)
        if function is None:
            made = self.opaque(op, operands, context, "is not modelled")
        else:
            try:
                made = function(op, operands, context)
            except DataDependentError as error:
                made = self.opaque(op, operands, context, error.reason)
            except ExecutionError as error:
                if not any(operand is not None and present(operand.labels) & _ASSUMED for operand in operands):
                    raise
                made = self.opaque(op, operands, context, error.reason)  # the number of rows was a guess
            except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError, MemoryError) as error:
                # A malformed operator must not bring the linter down; the verdict is then unknown, never safe.
                made = self.opaque(op, operands, context, f"could not be executed on shadows ({type(error).__name__})")
        self.current = op
        if op in self.watch:
            for at, operand in enumerate(operands):
                if operand is not None:
                    self.observe(f"operand{at}", operand)
            if made:
                self.observe("result", made[0])
        for value, shadow in zip(op.outputs, made, strict=False):
            self.result.values[value] = shadow
            self.kept += shadow.labels.nbytes

    def opaque(self, op: Op, operands: Sequence[Shadow | None], context: Context, reason: str) -> list[Shadow]:
        """Results of declared shape that may depend on everything that goes in."""
        self.result.unmodelled[op] = None
        labels = UNMODELLED
        for operand in operands:
            if operand is not None:
                labels |= present(operand.labels)
        made = []
        for value in op.outputs:
            shape = context.declared_shape(value)
            if shape is None:
                if value.consumers or value is op.outputs[0]:
                    raise DataDependentError(reason)
                shape = ()
            made.append(Shadow.unknown(shape, value.dtype, labels))
        return made

    def release(self, op: Op) -> None:
        """Forgets numbers that nothing reads any more, and whole shadows once enough labels are kept."""
        for value in op.inputs:
            if value is None or value not in self.reading:
                continue
            self.reading[value] -= 1
            if self.reading[value] or value not in self.result.values or value.producer is None:
                continue
            shadow = self.result.values[value]
            if self.kept > _KEPT_BYTES and shadow.labels.size > _SMALL:
                self.kept -= shadow.labels.nbytes
                del self.result.values[value]
            elif shadow.value is not None and shadow.value.size > 4096:
                self.result.values[value] = shadow.without_value()


def run(
    graph: Graph,
    bindings: Mapping[Value, Shadow],
    layout: Layout,
    *,
    length: int | None = None,
    symbols: Mapping[str, int] | None = None,
    constants: Constants | None = None,
    watch: Collection[Op] = (),
    budget: int = DEFAULT_BUDGET,
) -> Run:
    """Executes ``graph`` on shadows.

    Args:
        graph: main graph of a model.
        bindings: a shadow for each graph input.
        layout: hands out the labels that the bindings carry.
        length: the padded length, when no other dimension equals it (see :class:`Context`).
        symbols: sizes of the symbolic dimensions.
        constants: shared between runs of the same model.
        watch: operators whose operands are to be kept in ``Run.observed``.
        budget: elements that may be touched.

    Returns:
        What was found, up to the operator at which the run stopped.
    """
    sizes = dict(symbols or {})
    held = frozenset(watch)
    machine = _Machine(layout, length, sizes, constants or Constants(), held, budget)
    machine.result.values.update(bindings)
    for value in graph.outputs:
        machine.reading[value] = 1

    def body(inner: Graph, inputs: Sequence[Shadow]) -> list[Shadow]:
        return machine.run_body(inner, inputs, context)

    context = Context(layout, length, body, machine.charge, sizes.get, machine.observe)
    with np.errstate(all="ignore"):
        try:
            machine.run_graph(graph, context)
        except BudgetError:
            machine.result.stop = Stop(_at(machine, graph), "the work budget is used up", refused=False)
        except DataDependentError as error:
            machine.result.stop = Stop(_at(machine, graph), error.reason, refused=False)
        except ExecutionError as error:
            machine.result.stop = Stop(_at(machine, graph), error.reason, refused=True, sizes=error.sizes)
    return machine.result


def _at(machine: _Machine, graph: Graph) -> Op:
    return machine.current or graph.ops[0]


assert set(REGISTRY) <= set(VOCABULARY)
