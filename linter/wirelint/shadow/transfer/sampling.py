"""Transfer function of sampling at computed coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from wirelint.graph import Op
from wirelint.shadow.transfer.elementwise import given
from wirelint.shadow.transfer.registry import Context, transfer
from wirelint.shadow.value import ExecutionError, Shadow, join

__all__: list[str] = []


@transfer("GridSample")
def grid_sample(op: Op, operands: Sequence[Shadow | None], context: Context) -> list[Shadow]:
    """Each result may be any mixture of its channel's elements; where exactly is read is the grid's doing.

    Data are [batch, channels, *space], the grid is [batch, *results, rank of space].
    """
    x, grid = given(operands[0]), given(operands[1])
    if x.rank < 3 or grid.rank != x.rank or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.rank - 2:
        raise ExecutionError(f"samples of {x.shape} at a grid of shape {grid.shape}")
    where = join(grid.labels, [grid.rank - 1])[..., 0][:, None]
    shape = (*x.shape[:2], *grid.shape[1:-1])
    return [Shadow(shape, x.dtype, join(x.labels, range(2, x.rank)) | where)]
