"""OpenVINO IR files made to hurt."""

from __future__ import annotations

import pytest

HEAD = '<?xml version="1.0"?>\n'
PORT = '<port id="{id}" precision="FP32"><dim>2</dim><dim>3</dim></port>'


def layer(number, kind, *, inputs=0, outputs=1, data="", name=None):
    taken = "".join(PORT.format(id=port) for port in range(inputs))
    given = "".join(PORT.format(id=inputs + port) for port in range(outputs))
    return (
        f'<layer id="{number}" name="{name or kind.lower() + str(number)}" type="{kind}" version="opset1">{data}'
        + (f"<input>{taken}</input>" if taken else "")
        + (f"<output>{given}</output>" if given else "")
        + "</layer>"
    )


def edge(source, source_port, target, target_port):
    return f'<edge from-layer="{source}" from-port="{source_port}" to-layer="{target}" to-port="{target_port}"/>'


def net(layers, edges, before=""):
    return f'{HEAD}{before}<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'


PARAMETER = layer(0, "Parameter", data='<data shape="2,3" element_type="f32"/>', name="x")
RESULT = layer(9, "Result", inputs=1, outputs=0)
PLAIN = net([PARAMETER, RESULT], [edge(0, 0, 9, 0)])


def rules(bench, path, text):
    path.write_text(text, encoding="utf-8")
    return [finding.rule for finding in bench.check(path).findings if finding.code.startswith("WL9")]


def test_the_plain_one_is_fine(tmp_path, bench):
    assert rules(bench, tmp_path / "m.xml", PLAIN) == []


@pytest.mark.parametrize(
    "before",
    [
        "<!DOCTYPE net>",
        '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>',
        '<!DOCTYPE net [<!ENTITY file SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE net SYSTEM "http://localhost:1/x.dtd">',
        '<!DOCTYPE net [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
    ],
    ids=["plain", "expansion", "file", "network", "parameter"],
)
def test_document_types_are_refused(before, tmp_path, bench):
    assert rules(bench, tmp_path / "m.xml", PLAIN.replace(HEAD, HEAD + before).replace('name="m"', 'name="m"')) == [
        "unreadable"
    ]


def test_inclusion_is_no_inclusion(tmp_path, bench):
    (tmp_path / "other.xml").write_text(PLAIN)
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="other.xml"/>'
    assert rules(bench, tmp_path / "m.xml", PLAIN.replace("<layers>", f"<layers>{include}")) == []


def test_huge_attribute(tmp_path, bench):
    assert rules(bench, tmp_path / "m.xml", PLAIN.replace('name="x"', f'name="{"x" * 20_000_000}"')) == ["unreadable"]


def test_cycle(tmp_path, bench):
    layers = [PARAMETER, layer(1, "Add", inputs=2), layer(2, "ReLU", inputs=1), RESULT]
    edges = [edge(0, 0, 1, 0), edge(2, 1, 1, 1), edge(1, 2, 2, 0), edge(2, 1, 9, 0)]
    assert rules(bench, tmp_path / "m.xml", net(layers, edges)) == ["graph-cycle"]


@pytest.mark.parametrize(
    ("layers", "edges"),
    [
        ([PARAMETER, PARAMETER, RESULT], [edge(0, 0, 9, 0)]),
        ([PARAMETER, RESULT], [edge(0, 0, 9, 0), edge(7, 0, 9, 0)]),
        ([PARAMETER, RESULT], []),
        ([PARAMETER, layer(1, "Add", inputs=2), RESULT], [edge(0, 0, 1, 0), edge(1, 2, 9, 0)]),
        ([PARAMETER, layer(1, "Add", inputs=1), RESULT], [edge(0, 0, 1, 0), edge(1, 1, 9, 0)]),
    ],
    ids=["same-id", "edge-from-nowhere", "no-edge", "operand-without-edge", "one-operand"],
)
def test_wiring_that_no_runtime_accepts(layers, edges, tmp_path, bench):
    assert rules(bench, tmp_path / "m.xml", net(layers, edges)) == ["invalid-graph"]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("offset", "-1"),
        ("offset", str(2**64)),
        ("size", "-4"),
        ("size", str(2**63)),
        ("shape", f"{2**31},{2**31},{2**31}"),
        ("shape", "-1,2"),
    ],
)
def test_constants_that_do_not_fit(attribute, value, tmp_path, bench):
    entries = {"element_type": "f32", "shape": "2,3", "offset": "0", "size": "24", attribute: value}
    data = "<data " + " ".join(f'{key}="{entry}"' for key, entry in entries.items()) + "/>"
    layers = [PARAMETER, layer(1, "Const", data=data), layer(2, "Add", inputs=2), RESULT]
    edges = [edge(0, 0, 2, 0), edge(1, 0, 2, 1), edge(2, 2, 9, 0)]
    (tmp_path / "m.bin").write_bytes(bytes(24))
    found = rules(bench, tmp_path / "m.xml", net(layers, edges))
    assert found in (["weights-out-of-bounds"], ["invalid-graph"])


def test_long_chain(tmp_path, bench):
    count = 20_000
    layers = [
        PARAMETER.replace('id="0"', 'id="first"', 1),
        *(layer(at, "ReLU", inputs=1) for at in range(count)),
        RESULT.replace('id="9"', 'id="last"', 1),
    ]
    edges = [edge("first", 0, 0, 0), *(edge(at, 1, at + 1, 0) for at in range(count - 1)), edge(count - 1, 1, "last", 0)]
    assert rules(bench, tmp_path / "m.xml", net(layers, edges)) == []
