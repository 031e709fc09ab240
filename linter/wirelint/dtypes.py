"""Element types, one name for each, shared by every file format.

The names are short and say the width in bits: ``f32``, ``i64``, ``bf16``.  ONNX calls them ``FLOAT``, ``INT64``,
``BFLOAT16``; OpenVINO IR calls them ``f32``, ``i64``, ``bf16`` in ``element_type`` attributes and ``FP32``, ``I64``,
``BF16`` in port precisions.  The readers translate.
"""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DType"]


class DType(str, enum.Enum):
    """The element type of a tensor.

    Examples:
        >>> DType.F16.numpy
        dtype('float16')
        >>> DType.U4.bits, DType.U4.numpy
        (4, dtype('uint8'))
    """

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"
    F8E8M0 = "f8e8m0"
    F4E2M1 = "f4e2m1"
    NF4 = "nf4"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    I4 = "i4"
    I2 = "i2"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    U6 = "u6"
    U4 = "u4"
    U3 = "u3"
    U2 = "u2"
    U1 = "u1"
    BOOL = "bool"
    STRING = "string"
    C64 = "c64"
    C128 = "c128"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value

    @property
    def bits(self) -> int:
        """Width of one element in the file, in bits; 0 for strings and unknown types."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        return self.value[0] in "fn" or self is DType.BF16

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; ``bool`` is not one of them."""
        return self.value[0] in "iu" and self is not DType.UNKNOWN

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type in which elements are computed; sub-byte integers are widened to 8 bits."""
        return _NUMPY[self]

    @property
    def largest(self) -> float:
        """The largest finite value of a floating type; ``inf`` for the others."""
        if self.is_float and self is not DType.NF4:
            return float(ml_dtypes.finfo(self.numpy).max)  # type: ignore[no-untyped-call]
        return float("inf")


_BITS = {
    DType.F64: 64, DType.F32: 32, DType.F16: 16, DType.BF16: 16, DType.F8E4M3: 8, DType.F8E5M2: 8, DType.F8E8M0: 8,
    DType.F4E2M1: 4, DType.NF4: 4, DType.I64: 64, DType.I32: 32, DType.I16: 16, DType.I8: 8, DType.I4: 4, DType.I2: 2,
    DType.U64: 64, DType.U32: 32, DType.U16: 16, DType.U8: 8, DType.U6: 6, DType.U4: 4, DType.U3: 3, DType.U2: 2,
    DType.U1: 1, DType.BOOL: 8, DType.STRING: 0, DType.C64: 64, DType.C128: 128, DType.UNKNOWN: 0,
}  # fmt: skip

_NUMPY: dict[DType, np.dtype[Any]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.F8E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.F8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.F8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DType.F4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    DType.NF4: np.dtype(np.float32),
    DType.I64: np.dtype(np.int64),
    DType.I32: np.dtype(np.int32),
    DType.I16: np.dtype(np.int16),
    DType.I8: np.dtype(np.int8),
    DType.I4: np.dtype(np.int8),
    DType.I2: np.dtype(np.int8),
    DType.U64: np.dtype(np.uint64),
    DType.U32: np.dtype(np.uint32),
    DType.U16: np.dtype(np.uint16),
    DType.U8: np.dtype(np.uint8),
    DType.U6: np.dtype(np.uint8),
    DType.U4: np.dtype(np.uint8),
    DType.U3: np.dtype(np.uint8),
    DType.U2: np.dtype(np.uint8),
    DType.U1: np.dtype(np.uint8),
    DType.BOOL: np.dtype(np.bool_),
    DType.STRING: np.dtype(object),
    DType.C64: np.dtype(np.complex64),
    DType.C128: np.dtype(np.complex128),
    DType.UNKNOWN: np.dtype(np.float32),
}
