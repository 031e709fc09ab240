"""What the parser refuses, and that nothing in a damaged or hostile file gets past it as anything but one clear error."""

from __future__ import annotations

import time
import tracemalloc

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from wirelint.errors import ModelFileError, NotAModelError, WirelintError
from wirelint.formats.openvino import read, sniff

IR = """<?xml version="1.0"?>
<net name="m" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="?,4" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="x">
					<dim>-1</dim>
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="axis" type="Const" version="opset1">
			<data element_type="i64" shape="1" offset="0" size="8" />
			<output>
				<port id="0" precision="I64">
					<dim>1</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="sum" type="ReduceSum" version="opset1">
			<data keep_dims="false" />
			<input>
				<port id="0" precision="FP32" />
				<port id="1" precision="I64" />
			</input>
			<output>
				<port id="2" precision="FP32" names="y">
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="3" name="result" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32" />
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
	</edges>
	<rt_info>
		<Runtime_version value="2025.0" />
	</rt_info>
</net>
"""

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n"

BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE net [<!ENTITY a "' + "x" * 1000 + '">'
    + "".join(f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 100}">' for at in range(8))
    + ']>\n<net name="&i;" version="11"><layers/></net>'
)  # fmt: skip


def written(folder, text, weights=bytes(8)):
    path = folder / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def refused(folder, text):
    with pytest.raises(ModelFileError) as caught:
        read(written(folder, text))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder / "model.xml"))
    return caught.value


def test_the_plain_file_reads(tmp_path):
    model = read(written(tmp_path, IR))
    assert [node.kind for node in model.graph.ops] == ["ReduceSum"]
    assert (model.graph.output_names, model.problems) == (["y"], ())


@pytest.mark.parametrize(
    "head",
    [
        b'<net name="m" version="11">',
        b"<net version='7' name='m'/>",
        b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<!-- a <net> -->\n\t<net\n name="m"\n version="10">',
        b"<?xml version='1.0'?><?pi <net> ?><net name='a > b' version='11' extra='1'>",
        b'<!DOCTYPE net [<!ENTITY a "b">]><net version="11">',
    ],
)
def test_the_root_element_tells_an_ir(head):
    assert sniff(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x08\x07\x12\x07pytorch",
        b'<net name="m">',
        b'<net name="version=11">',
        b"<net name=\" version='11' \">",
        b'<network version="11">',
        b'<annotation><net version="11"/></annotation>',
        b"<!-- <net version='11'> -->",
        b"<net name='m' vers",
        b'<?xml version="1.0"?>',
        b"PK\x03\x04",
    ],
)
def test_other_content_is_no_ir(head):
    assert not sniff(head)


@pytest.mark.parametrize("text", ["<html></html>", '<net name="m"></net>', '<net version="new"></net>', "{}", "\x7fELF"])
def test_other_files_are_not_models(text, tmp_path):
    with pytest.raises(NotAModelError):
        read(written(tmp_path, text))


@pytest.mark.parametrize("version", [6, 7, 9])
def test_old_versions_are_refused(version, tmp_path):
    error = refused(tmp_path, IR.replace('version="11"', f'version="{version}"'))
    assert error.rule == "unreadable"
    assert f"IR version {version} is too old" in error.reason


def test_unknown_versions_are_refused(tmp_path):
    assert "IR version 12" in refused(tmp_path, IR.replace('version="11"', 'version="12"')).reason


@pytest.mark.parametrize("text", ["", LFS])
def test_files_without_their_content(text, tmp_path):
    error = refused(tmp_path, text)
    assert error.rule == ("lfs-pointer" if text else "unreadable")


def test_a_missing_file_is_one_error(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read") as caught:
        read(tmp_path / "absent.xml")
    assert caught.value.rule == "unreadable"


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        IR.replace("<net ", '<!DOCTYPE net SYSTEM "file:///etc/passwd"><net ', 1),
        IR.replace("<net ", '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]>\n<net ', 1).replace('"sum"', '"&e;"'),
    ],
    ids=["bomb", "external subset", "external entity"],
)
def test_a_document_type_is_refused_before_parsing(text, tmp_path):
    tracemalloc.start()
    error = refused(tmp_path, text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "DOCTYPE" in error.reason
    assert peak < 5 << 20


def test_undeclared_entities_are_malformed(tmp_path):
    assert refused(tmp_path, IR.replace('"sum"', '"&secret;"')).rule == "unreadable"


def test_a_document_type_behind_the_examined_head_does_not_help(tmp_path):
    padding = f"<!--{'x' * 70_000}-->"
    with pytest.raises(WirelintError):
        read(written(tmp_path, BOMB.replace("<!DOCTYPE", padding + "<!DOCTYPE", 1)))


def test_a_declared_encoding_does_not_smuggle_markup(tmp_path):
    """Seen as UTF-7 the comment would end early; the parser reads UTF-8 whatever the declaration says."""
    text = IR.replace('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-7"?><!-- +AC0ALQA+-<!DOCTYPE net> -->')
    assert read(written(tmp_path, text)).graph.output_names == ["y"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_not_models(encoding, tmp_path):
    with pytest.raises(NotAModelError):
        read(written(tmp_path, IR.encode(encoding)))


def test_truncation_says_so_with_its_line(tmp_path):
    cut = IR[: IR.index("<edges>")]
    error = refused(tmp_path, cut)
    assert error.rule == "unreadable"
    assert "truncated" in error.reason
    assert error.line == cut.count("\n") + 1


def test_malformed_markup_has_its_line(tmp_path):
    error = refused(tmp_path, IR.replace('<data keep_dims="false" />', "<data keep_dims=false />"))
    assert error.rule == "unreadable"
    assert error.line == IR[: IR.index("<data keep_dims")].count("\n") + 1


def test_a_model_without_layers_is_invalid(tmp_path):
    assert refused(tmp_path, '<net name="m" version="11"><layers/></net>').rule == "invalid-graph"


def test_huge_attributes_are_refused(tmp_path):
    assert refused(tmp_path, IR.replace('name="sum"', f'name="{"x" * (11 << 20)}"')).rule == "unreadable"


def test_deep_nesting_is_refused(tmp_path):
    deep = IR.replace('<data keep_dims="false" />', "<data>" * 100_000)
    assert refused(tmp_path, deep).rule == "unreadable"


def test_bodies_nested_too_deeply_are_refused(tmp_path):
    inner = '<layer id="0" name="x" type="If" version="opset8"><then_body><layers>'
    text = f'<net name="m" version="11"><layers>{inner * 40}{"</layers></then_body></layer>" * 40}</layers></net>'
    error = refused(tmp_path, text)
    assert error.rule == "unreadable"
    assert "nested deeper" in error.reason


def test_comments_and_instructions_mean_nothing(tmp_path):
    text = IR.replace("<output>", "<output><!-- <port id='9'/> --><?pi?>").replace("<layers>", "<layers><!-- none -->")
    assert read(written(tmp_path, text)).graph.output_names == ["y"]


def test_layers_elsewhere_are_not_layers(tmp_path):
    text = IR.replace("<rt_info>", '<rt_info><layers><layer id="0" name="y" type="Parameter"/></layers>')
    assert len(read(written(tmp_path, text)).graph.inputs) == 1


def test_metadata_is_bounded(tmp_path):
    many = "".join(f'<k{at} value="v"/>' for at in range(30_000))
    model = read(written(tmp_path, IR.replace("<rt_info>", f'<rt_info><long value="{"x" * 200_000}"/>{many}')))
    assert len(model.metadata) <= 10_000
    assert max(map(len, model.metadata.values())) <= 1 << 16


def test_a_long_chain_of_layers_costs_seconds(tmp_path):
    """Linear in the layers: neither depth nor width recurses or searches."""
    count = 20_000
    layer = (
        '<layer id="{0}" name="n" type="ReLU" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1" precision="FP32"/></output></layer>\n'
    )
    edge = '<edge from-layer="{0}" from-port="{1}" to-layer="{2}" to-port="0"/>\n'
    parameter = (
        '<layer id="0" name="x" type="Parameter" version="opset1"><output><port id="0" precision="FP32"/></output></layer>'
    )
    layers = parameter + "".join(layer.format(at) for at in range(1, count))
    edges = "".join(edge.format(at - 1, int(at > 1), at) for at in range(1, count))
    text = f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    start = time.process_time()
    graph = read(written(tmp_path, text)).graph
    assert len(graph.ops) == count - 1
    assert time.process_time() - start < 30


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(IR) - 2))
def test_every_truncation_is_one_clear_error(tmp_path, length):
    with pytest.raises(WirelintError) as caught:
        read(written(tmp_path, IR[:length]))
    assert "\n" not in str(caught.value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutations_read_or_fail_clearly(tmp_path, data):
    """Pieces of the file are dropped, doubled or replaced; the reader answers with a model or one of its own errors."""
    text = IR
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        end = data.draw(st.integers(start, min(len(text), start + 60)))
        piece = data.draw(
            st.sampled_from(["", text[start:end] * 2, "-1", '"', "<", "9" * 30, "\x00", "&#0;", "?,?", "é", "If", "Loop"])
        )
        text = text[:start] + piece + text[end:]
    path = written(tmp_path, text)
    try:
        model = read(path)
    except WirelintError as error:
        message = str(error)
        assert "\n" not in message
        return
    for node in model.graph.walk():
        assert all(value.producer is node for value in node.outputs)
