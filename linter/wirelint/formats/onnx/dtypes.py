"""ONNX element types, and how each is stored.

The numbers are those of ``TensorProto.DataType`` (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

from wirelint.dtypes import DType

__all__ = ["BY_NUMBER", "FNUZ", "TYPED_FIELD"]

BY_NUMBER: dict[int, DType] = {
    1: DType.F32,
    2: DType.U8,
    3: DType.I8,
    4: DType.U16,
    5: DType.I16,
    6: DType.I32,
    7: DType.I64,
    8: DType.STRING,
    9: DType.BOOL,
    10: DType.F16,
    11: DType.F64,
    12: DType.U32,
    13: DType.U64,
    14: DType.C64,
    15: DType.C128,
    16: DType.BF16,
    17: DType.F8E4M3,
    18: DType.F8E4M3,
    19: DType.F8E5M2,
    20: DType.F8E5M2,
    21: DType.U4,
    22: DType.I4,
    23: DType.F4E2M1,
    24: DType.F8E8M0,
    25: DType.U2,
    26: DType.I2,
}
"""Element types by number.  The FNUZ variants of the 8-bit floats share a name with the common ones."""

FNUZ = {18: "float8_e4m3fnuz", 20: "float8_e5m2fnuz"}
"""8-bit floats whose bits mean something else than those of the type that they are shown as."""

TYPED_FIELD: dict[DType, str] = {
    DType.F32: "float_data",
    DType.C64: "float_data",
    DType.F64: "double_data",
    DType.C128: "double_data",
    DType.I64: "int64_data",
    DType.U64: "uint64_data",
    DType.U32: "uint64_data",
    DType.STRING: "string_data",
}
"""The field that holds the elements when ``raw_data`` doesn't; ``int32_data`` for all types that are not listed."""
