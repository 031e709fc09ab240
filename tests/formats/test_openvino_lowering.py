"""How layers are lowered that OpenVINO's Python builders cannot make: old forms, plugin operators, hand-written ones."""

from __future__ import annotations

import importlib
import inspect
import re

import numpy as np
import openvino as ov
import openvino.opset16 as op
import pytest

from wirelint.errors import ModelFileError
from wirelint.formats.openvino import read
from wirelint.formats.openvino.lower import LOWERINGS
from wirelint.ops.vocabulary import VOCABULARY

PRECISIONS = {"float32": ("f32", "FP32"), "int64": ("i64", "I64"), "bool": ("boolean", "BOOL")}
STRUCTURAL = {"Parameter", "Constant", "Result"}


def port(number, shape, precision):
    dims = "".join(f"<dim>{dim}</dim>" for dim in shape)
    return f'<port id="{number}" precision="{precision}">{dims}</port>'


def lowered(folder, kind, version, data, operands, results):
    """Reads an IR of one layer; operands are arrays (constants) or shapes (parameters), results are shapes."""
    weights, layers, edges = b"", [], []
    for slot, operand in enumerate(operands):
        if isinstance(operand, np.ndarray):
            element, precision = PRECISIONS[str(operand.dtype)]
            shape = operand.shape
            described = f'type="Const" version="opset1"><data element_type="{element}" shape="{",".join(map(str, shape))}"'
            described += f' offset="{len(weights)}" size="{operand.nbytes}"/>'
            weights += operand.tobytes()
        else:
            shape, precision = operand, "FP32"
            dims = ",".join("?" if dim < 0 else str(dim) for dim in shape)
            described = f'type="Parameter" version="opset1"><data element_type="f32" shape="{dims}"/>'
        layers.append(f'<layer id="{slot}" name="i{slot}" {described}<output>{port(0, shape, precision)}</output></layer>')
        edges.append(f'<edge from-layer="{slot}" from-port="0" to-layer="100" to-port="{slot}"/>')
    attributes = " ".join(f'{name}="{value}"' for name, value in data.items())
    inputs = "".join(port(slot, (), "FP32") for slot in range(len(operands)))
    outputs = "".join(port(50 + slot, shape, "FP32") for slot, shape in enumerate(results))
    layers.append(
        f'<layer id="100" name="it" type="{kind}" version="{version}"><data {attributes}/>'
        f"<input>{inputs}</input><output>{outputs}</output></layer>"
    )
    for slot in range(len(results)):
        reader = f'<layer id="{200 + slot}" name="r{slot}" type="Result" version="opset1">'
        layers.append(f"{reader}<input>{port(0, (), 'FP32')}</input></layer>")
        edges.append(f'<edge from-layer="100" from-port="{50 + slot}" to-layer="{200 + slot}" to-port="0"/>')
    path = folder / "model.xml"
    path.write_text(f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>')
    path.with_suffix(".bin").write_bytes(weights)
    return read(path).graph


def single(graph, kind):
    assert [node.kind for node in graph.ops] == [kind]
    node = graph.ops[0]
    assert set(node.attrs) <= set(VOCABULARY[kind].attributes)
    assert node.origin.name == "it"
    return node


def integers(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(("mode", "axes"), [("index", integers(0, 2)), ("mask", np.array([True, False, True]))])
def test_reverse_flips(mode, axes, tmp_path):
    node = single(lowered(tmp_path, "Reverse", "opset1", {"mode": mode}, [(2, 3, 4), axes], [(2, 3, 4)]), "Flip")
    assert node.inputs[1].constant.load().tolist() == [0, 2]


@pytest.mark.parametrize(("by", "slot", "values"), [("sizes", 3, [12, 12]), ("scales", 2, [2.0, 2.0])])
def test_the_fourth_interpolate_has_both_sizes_and_scales(by, slot, values, tmp_path):
    data = {"mode": "linear_onnx", "shape_calculation_mode": by, "coordinate_transformation_mode": "pytorch_half_pixel"}
    operands = [(1, 2, 6, 6), integers(12, 12), np.array([2, 2], np.float32), integers(2, 3)]
    node = single(lowered(tmp_path, "Interpolate", "opset4", data, operands, [(1, 2, 12, 12)]), "Resize")
    assert (node.attrs["mode"], node.attrs["axes"]) == ("linear", [2, 3])
    assert node.attrs["coordinate_transformation_mode"] == "pytorch_half_pixel"
    assert [index for index, value in enumerate(node.inputs) if value is not None] == [0, slot]
    assert node.inputs[slot].constant.load().tolist() == values


def test_padding_interpolations_are_opaque(tmp_path):
    data = {"mode": "nearest", "shape_calculation_mode": "sizes", "pads_begin": "0,0,1,0"}
    single(
        lowered(tmp_path, "Interpolate", "opset11", data, [(1, 2, 6, 6), integers(1, 2, 12, 12)], [(1, 2, 12, 12)]), "Opaque"
    )


def test_rms_of_the_plugins(tmp_path):
    graph = lowered(
        tmp_path, "RMS", "ie_internal_opset", {"epsilon": "1e-05"}, [(2, 5, 8), np.ones(8, np.float32)], [(2, 5, 8)]
    )
    node = single(graph, "RMSNormalization")
    assert node.attrs == {"axis": -1, "epsilon": 1e-5}
    assert node.origin.op_type == "ie_internal_opset.RMS"


def test_paged_attention_reads_all_that_it_is_given(tmp_path):
    graph = lowered(tmp_path, "PagedAttentionExtension", "extension", {}, [(-1, 8)] * 13, [(-1, 8), (-1,)])
    node = single(graph, "PackedAttention")
    names = VOCABULARY["PackedAttention"].operands
    assert [names[index] for index, value in enumerate(node.inputs[: len(names)]) if value is None] == ["mask?"]
    assert {value.origin.name for value in node.inputs if value is not None} == {f"i{slot}" for slot in range(13)}
    assert all(len(value.consumers) == 1 for value in graph.inputs)


@pytest.mark.parametrize("kind", ["Gather", "Add", "Transpose", "ReduceSum"])
def test_operators_of_a_foreign_domain_are_opaque_whatever_they_are_called(kind, tmp_path):
    node = single(lowered(tmp_path, kind, "extension", {}, [(2, 3), integers(0)], [(2, 3)]), "Opaque")
    assert node.origin.op_type == f"extension.{kind}"
    assert len(node.inputs) == 2


def test_types_are_looked_up_without_regard_to_case(tmp_path):
    single(lowered(tmp_path, "RELU", "opset1", {}, [(2, 3)], [(2, 3)]), "Relu")


@pytest.mark.parametrize(
    ("kind", "data", "operands"),
    [
        ("Transpose", {}, [(2, 3), (2,)]),
        ("Gather", {"batch_dims": "0"}, [(3, 3), (3,), ()]),
        ("TopK", {"axis": "0", "mode": "max", "sort": "index"}, [(4,), integers(1)]),
        ("Add", {"auto_broadcast": "pdpd"}, [(2, 3), (2,)]),
        ("Pad", {"pad_mode": "symmetric"}, [(2, 3), integers(1, 1), integers(0, 0)]),
        ("Convolution", {"strides": "1", "pads_begin": "0", "pads_end": "0", "dilations": "1"}, [(1, 2, 5), (-1, -1, -1)]),
        ("AdaptiveAvgPool", {}, [(1, 2, 5), integers(2)]),
        ("ScatterElementsUpdate", {"reduction": "mean"}, [(4,), (2,), (2,), integers(0)]),
        ("GatherND", {"batch_dims": "2"}, [(2, 3, 4), (2, 3, 1)]),
        ("TensorIterator", {}, [(2, 3)]),
    ],
)  # fmt: skip
def test_forms_without_a_counterpart_are_opaque(kind, data, operands, tmp_path):
    version = "opset5" if kind == "GatherND" else "opset1"
    if kind == "TensorIterator":
        with pytest.raises(ModelFileError, match="has no <body>"):
            lowered(tmp_path, kind, version, data, operands, [(-1,)])
        return
    node = single(lowered(tmp_path, kind, version, data, operands, [(-1,)]), "Opaque")
    assert len(node.inputs) == len(operands)


@pytest.mark.parametrize(
    ("kind", "data", "operands", "message"),
    [
        ("Add", {}, [(2,)], "has 1 inputs but needs at least 2"),
        ("Concat", {}, [(2,), (2,)], "no attribute 'axis'"),
        ("Elu", {"alpha": "steep"}, [(2,)], "no number"),
        ("CumSum", {"exclusive": "perhaps"}, [(2,), integers(0)], "neither true nor false"),
        ("AvgPool", {"kernel": "2", "strides": "1", "pads_begin": "0", "pads_end": "0"}, [(1, 1, 4)], "exclude-pad"),
        ("VariadicSplit", {}, [(4,), integers(0), integers(-1, -1)], "more than one length"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(kind, data, operands, message, tmp_path):
    with pytest.raises(ModelFileError, match=message) as caught:
        lowered(tmp_path, kind, "opset3", data, operands, [(2,)])
    assert caught.value.rule == "invalid-graph"
    assert "layer 'it'" in str(caught.value)


def test_a_split_leaves_the_rest_of_a_dynamic_axis(tmp_path):
    graph = lowered(tmp_path, "VariadicSplit", "opset1", {}, [(-1, -1), integers(1), integers(1, -1)], [(-1, 1), (-1, -1)])
    assert [node.kind for node in graph.ops] == ["Shape", "Gather", "Sub", "Concat", "Split"]
    assert graph.ops[-1].inputs[1] is graph.ops[-2].outputs[0]


OPAQUE = {
    "AdaptiveMaxPool", "BatchToSpace", "BinaryConvolution", "CTCGreedyDecoder", "CTCGreedyDecoderSeqLen", "CTCLoss", "Col2Im",
    "DFT", "DeformableConvolution", "DeformablePSROIPooling", "DetectionOutput", "ErfInv", "ExtractImagePatches", "GRN",
    "GatherTree", "GenerateProposals", "GroupedMatMul", "I420toBGR", "I420toRGB", "IDFT", "IRDFT", "ISTFT", "Inverse",
    "MatrixNms", "MulticlassNms", "Multinomial", "NMSRotated", "NV12toBGR", "NV12toRGB", "NonMaxSuppression", "PSROIPooling",
    "PriorBox", "PriorBoxClustered", "Proposal", "RDFT", "ROIAlign", "ROIAlignRotated", "ROIPooling", "RegionYolo", "ReorgYolo",
    "STFT", "SegmentMax", "SliceScatter", "SpaceToBatch", "SparseFillEmptyRows", "StringTensorPack", "StringTensorUnpack",
}  # fmt: skip
"""Operators of OpenVINO's opsets that have no canonical counterpart."""


def types_of_all_opsets():
    """The operator types that the Python builders of every opset create, by their own source."""
    types = {"If", "Loop", "TensorIterator", "ReadValue", "Assign"}
    for number in range(1, 40):
        try:
            module = importlib.import_module(f"openvino.opset{number}.ops")
        except ImportError:
            continue
        types.update(re.findall(r'create\(\s*"([A-Za-z0-9_]+)"', inspect.getsource(module)))
    return types - STRUCTURAL


def test_every_operator_of_every_opset_is_lowered_or_known_to_be_opaque():
    types = types_of_all_opsets()
    assert len(types) > 150
    assert {name for name in types if name.casefold() not in LOWERINGS} <= OPAQUE
    assert not {name.casefold() for name in OPAQUE} & set(LOWERINGS)


def test_opaque_operators_of_real_models_keep_all_operands(tmp_path):
    x = op.parameter([2, 4, 2], np.float32, name="x")
    path = tmp_path / "model.xml"
    ov.serialize(ov.Model([op.dft(x, op.constant(np.array([1])))], [x], "m"), path, path.with_suffix(".bin"))
    graph = read(path).graph
    assert [(node.kind, node.origin.op_type, len(node.inputs)) for node in graph.ops] == [("Opaque", "DFT", 2)]
