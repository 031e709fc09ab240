"""Routes: what is on them, and how they are drawn as SVG, for Graphviz and for Mermaid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import onnx
import pytest
from click.testing import CliRunner

from layered import layered_model
from wirelint.api import facts
from wirelint.cli import cli
from wirelint.facts import Route, RouteNode
from wirelint.picture import dot, mermaid, svg
from wirelint.picture.drawing import Drawing, draw_chain, draw_route

if TYPE_CHECKING:
    from wirelint.facts import InputFacts

SAMPLES = Path(__file__).parents[2] / "sample_models"
HOSTILE = "a\n</svg><script>alert(1)</script>\x1b[31m\"'&\\]};\u202e\ud800"


def route_of(path: Path, name: str) -> InputFacts:
    return next(entry for entry in facts(path).inputs if entry.name == name)


@pytest.fixture
def partial(tmp_path: Path) -> InputFacts:
    onnx.save(layered_model(6, unmasked=(2, 4)), tmp_path / "partial.onnx")
    return route_of(tmp_path / "partial.onnx", "attention_mask")


def test_layers_are_drawn_once_and_what_is_not_reached_is_marked(partial: InputFacts) -> None:
    nodes = partial.route.nodes
    assert [node.label for node in nodes[:5]] == ["attention_mask", "Cast", "Sub", "Mul", "Unsqueeze"]
    reached = [node for node in nodes if node.kind == "attention"]
    missing = [node for node in nodes if node.kind == "missing"]
    assert [(node.label, node.count, node.broken) for node in reached] == [("Softmax", 4, False)]
    assert [(node.label, node.count, node.broken) for node in missing] == [("Softmax", 2, True)]
    assert missing[0].names == ("/layer.2/weights/Softmax", "/layer.4/weights/Softmax")


def test_every_step_hangs_on_the_input(partial: InputFacts) -> None:
    reached = {0}
    for one, other in partial.route.edges:
        assert one < other
        if one in reached:
            reached.add(other)
    assert reached == {at for at, node in enumerate(partial.route.nodes) if node.kind != "missing"}


@pytest.mark.parametrize(
    ("sample", "name", "ends"),
    [
        ("clean/bert_qa.onnx", "input_ids", {"embedding"}),
        ("clean/bert_qa.onnx", "token_type_ids", {"embedding"}),
        ("clean/embedder.onnx", "attention_mask", {"attention", "pooling"}),
        ("clean/bert_qa_ov.xml", "attention_mask", {"attention"}),
    ],
)
def test_a_route_ends_at_what_decides_the_role(sample: str, name: str, ends: set[str]) -> None:
    nodes = route_of(SAMPLES / sample, name).route.nodes
    assert ends <= {node.kind for node in nodes}
    assert not any(node.broken for node in nodes)


@pytest.mark.parametrize(
    "sample", ["mask/bert_mask_inverted.onnx", "mask/bert_mask_weak.onnx", "mask/bert_mask_wrong_axis.onnx"]
)
def test_a_mask_that_does_something_else_breaks_at_the_attention(sample: str) -> None:
    nodes = route_of(SAMPLES / sample, "attention_mask").route.nodes
    assert {node.kind for node in nodes if node.broken} == {"attention"}


def test_an_input_that_nothing_reads_breaks_at_once() -> None:
    (entry,) = [
        entry for entry in facts(SAMPLES / "mask/bert_mask_unread_dynamo.onnx").inputs if entry.name == "attention_mask"
    ]
    assert entry.route.nodes[0].broken


def test_a_route_with_very_many_ways_is_cut(tmp_path: Path) -> None:
    model = layered_model(80)
    # Every layer by a way of its own length, so that no two are alike.
    for layer in range(80):
        add = next(node for node in model.graph.node if node.name == f"/layer.{layer}/biased/Add")
        add.input[1] = f"way{layer}"
        before = "bias" if not layer else f"way{layer - 1}"
        model.graph.node.append(onnx.helper.make_node("Abs" if layer % 2 else "Identity", [before], [f"way{layer}"]))
    onnx.save(model, tmp_path / "ways.onnx")
    route = route_of(tmp_path / "ways.onnx", "attention_mask").route
    assert 1 < len(route.nodes) <= 130
    assert route.left_out > 0
    assert f"{route.left_out} more steps are not shown" in svg.render(draw_route(route, "ways"))


def hostile() -> Drawing:
    nodes = (
        RouteNode("input", HOSTILE, note="mask"),
        RouteNode("attention", HOSTILE, (HOSTILE,), 3, "turns to NaN", broken=True),
    )
    return draw_route(Route(nodes, ((0, 1),)), HOSTILE)


def test_svg_is_whole_and_names_stay_text() -> None:
    root = ET.fromstring(svg.render(hostile()).encode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "alert(1)" in "".join(root.itertext())
    assert "\u202e" not in svg.render(hostile())


def test_a_break_is_told_without_colour() -> None:
    drawn = svg.render(hostile())
    assert "✗" in drawn
    assert "broken here" in drawn


def test_pictures_of_one_page_do_not_share_identifiers() -> None:
    page = svg.inline(hostile(), "a") + svg.inline(hostile(), "b")
    found = re.findall(r' id="([^"]+)"', page)
    assert len(found) == len(set(found))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(found)


def test_dot_quotes_names() -> None:
    drawn = dot.render(hostile())
    assert drawn.count("{") >= 1
    assert "n0 -> n1;" in drawn
    for line in drawn.splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0, line


def test_mermaid_writes_what_is_special_as_codes() -> None:
    drawn = mermaid.render(hostile())
    label = next(line for line in drawn.splitlines() if line.startswith("  n1["))
    assert label.endswith(":::brokenBox")
    assert "<script>" not in drawn.split("%%")[0]
    assert not set('<>"') & set(label.split('["')[1].rsplit('"]', 1)[0].replace("<br/>", ""))
    assert "n0 --> n1" in drawn


def test_no_word_of_mermaid_names_a_class_or_a_box() -> None:
    """One that does makes the whole picture a syntax error."""
    boxes = [RouteNode(kind, kind, broken=kind == "missing") for kind in ("input", "operator", "attention", "missing", "end")]
    drawn = mermaid.render(draw_route(Route(tuple(boxes), ((0, 1), (1, 2), (1, 4))), "all kinds"))
    named = {*re.findall(r"classDef (\w+)", drawn), *re.findall(r":::(\w+)", drawn), *re.findall(r"(?m)^  (\w+)\[", drawn)}
    assert len(named) == 10
    words = {"call", "class", "classDef", "click", "default", "direction", "end", "flowchart", "graph", "style", "subgraph"}
    assert not named & words


def test_what_is_not_reached_stands_at_the_end_for_graphviz(partial: InputFacts) -> None:
    drawn = dot.render(draw_route(partial.route, "partial"))
    (at,) = [index for index, node in enumerate(partial.route.nodes) if node.kind == "missing"]
    assert f"{{ rank=sink; n{at}; }}" in drawn


def test_a_chain_marks_where_padding_gets_through() -> None:
    drawn = draw_chain(("'ids' at padded positions", "Gather '/g'", "MatMul '/m'", "output 'logits'"), "leak")
    assert [box.broken for box in drawn.boxes] == [False, False, True, False]
    alone = draw_chain(("'ids' at padded positions", "ReduceMean '/m'"), "leak")
    assert [box.broken for box in alone.boxes] == [False, True]


def test_a_long_run_of_steps_is_one_box() -> None:
    nodes = (*tuple(RouteNode("operator" if at else "input", f"Op{at}") for at in range(30)), RouteNode("attention", "Softmax"))
    drawn = draw_route(Route(nodes, tuple((at, at + 1) for at in range(30))), "long")
    assert [box.style for box in drawn.boxes] == ["input", "step", "end"]
    assert drawn.boxes[1].title == "29 steps"
    assert drawn.edges == ((0, 1), (1, 2))


@pytest.mark.parametrize(("suffix", "start"), [(".svg", "<?xml"), (".dot", "digraph"), (".mmd", "flowchart")])
def test_the_command_writes_what_the_suffix_says(tmp_path: Path, suffix: str, start: str) -> None:
    target = tmp_path / f"route{suffix}"
    result = CliRunner().invoke(cli, ["graph", str(SAMPLES / "clean/bert_qa.onnx"), "--input", "1", "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert target.read_text().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "atention_mask"], "did you mean 'attention_mask'"),
        (["--input", "zzz"], "known are: attention_mask, input_ids, token_type_ids"),
        (["--input", "0", "-o", "route.png"], "the name must end with .svg, .dot, .mmd"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["graph", str(SAMPLES / "clean/bert_qa.onnx"), *arguments])
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
