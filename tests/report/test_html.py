"""The HTML report: one page that asks nothing of anybody and holds up against names."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
from pathlib import Path

import onnx
import pytest

import wirelint
from layered import layered_model
from wirelint.errors import ConfigurationError
from wirelint.facts import AttentionFacts, ModelFacts, OutputFacts, PaddingFacts, Place, Route, RouteNode, SiteFacts
from wirelint.findings import Report
from wirelint.picture import ladder, matrix
from wirelint.report import RenderOptions, renderer

SAMPLES = Path(__file__).parents[2] / "sample_models"
HOSTILE = "a\n</svg><script>alert(1)</script>\x1b[31m\"'&\u202e\ud800"
PLACE = Place("softmax", "Softmax")
VOID = {"meta", "br", "link", "img", "input", "hr"}


def page(*paths: Path) -> str:
    return renderer("html")(wirelint.check(paths, config=False), RenderOptions())


class Outline(html.parser.HTMLParser):
    """Checks that tags are nested, and gathers what they say."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert not found.open
    return found


@pytest.fixture(scope="module")
def sample_page() -> str:
    names = ["mask/bert_mask_partial.onnx", "clean/bert_qa_ov.xml", "clean/cnn.onnx", "file/truncated.onnx", "clean/gpt2.onnx"]
    return page(*(SAMPLES / name for name in names))


def test_tags_are_nested_and_identifiers_unique(sample_page: str) -> None:
    found = outline(sample_page)
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in found.tags:
        for reference in (attrs.get("aria-labelledby"), (attrs.get("href") or "").removeprefix("#")):
            assert not reference or reference in ids


def test_nothing_is_asked_of_the_network(sample_page: str) -> None:
    found = outline(sample_page)
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "form"}
    assert not [attrs for _, attrs in found.tags if "src" in attrs or not (attrs.get("href") or "#").startswith("#")]
    assert "default-src 'none'" in sample_page
    style = sample_page.split("<style>")[1].split("</style>", maxsplit=1)[0]
    assert "@import" not in style
    assert "url(" not in style


def test_the_page_can_be_read_aloud(sample_page: str) -> None:
    found = outline(sample_page)
    assert ("html", {"lang": "en"}) in found.tags
    headings = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(headings))
    for tag, attrs in found.tags:
        if tag == "svg" and attrs.get("aria-hidden") != "true":
            assert attrs["role"] == "img"
            assert attrs["aria-labelledby"]
    captions = sum(tag == "caption" for tag, _ in found.tags)
    assert captions == sum(tag == "table" for tag, _ in found.tags)
    assert all(attrs.get("scope") == "col" for tag, attrs in found.tags if tag == "th")
    scrolled = [attrs for _, attrs in found.tags if attrs.get("class") == "scroll" and attrs.get("role")]
    assert scrolled
    assert all(attrs.get("tabindex") == "0" and attrs.get("aria-label") for attrs in scrolled)


def test_the_page_says_what_was_found_and_how_it_is_known(sample_page: str) -> None:
    said = " ".join(outline(sample_page).said)
    for words in (
        "mask-partial WL203",
        "How to mend it",
        "What it means",
        "Where each input goes",
        "Who hears whom",
        "How far padding gets",
        "not reached; hears padding: nothing hides it",
        "padding gets through here",
        "acts on the scores of 1 of 2 attention sites",
    ):
        assert words in said
    assert "truncated" in said


def test_names_stay_text(report: Report) -> None:
    tainted = next(model.facts for model in report.models if model.facts is not None)
    tainted.inputs[1].name = HOSTILE
    tainted.inputs[1].route = Route((RouteNode("input", HOSTILE), RouteNode("missing", HOSTILE, (HOSTILE,), broken=True)))
    tainted.outputs[0].name = HOSTILE
    tainted.outputs[0].witness_right = (f"'{HOSTILE}' at padded positions", f"MatMul '{HOSTILE}'")
    tainted.attention.sites = [SiteFacts(Place(HOSTILE, HOSTILE), matrix=("#",), padded_keys=".", padded_queries=".")]
    text = renderer("html")(report, RenderOptions())
    found = outline(text)
    assert "script" not in {tag for tag, _ in found.tags}
    assert "alert(1)" in "".join(found.said)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.encode("utf-8")


def test_no_model_and_a_fault_are_said(report: Report) -> None:
    assert "No model file among the paths." in renderer("html")(Report(), RenderOptions())
    report.models[0].fault = "went wrong"
    assert "went wrong" in renderer("html")(report, RenderOptions())


def test_a_matrix_shows_real_queries_that_hear_padding() -> None:
    site = SiteFacts(
        PLACE,
        matrix=("##.#", "##.#", "....", "####"),
        padded_keys="...#",
        padded_queries="...#",
    )
    kinds = [kind for _, _, kind in matrix._cells(site)]
    assert kinds.count("leak") == 2
    assert kinds.count("idle") == 4
    assert "real queries hear padding in 2 cells" in matrix.describe(site)
    assert matrix.inline(site, "k").count('class="leak"') == matrix.inline(site, "k").count('class="cross"') == 2


def test_alike_sites_are_drawn_once() -> None:
    sites = [SiteFacts(PLACE, matrix=("#.",), mask=mask) for mask in ("effective", "effective", "absent")]
    assert [len(group) for group in matrix.alike([*sites, SiteFacts(PLACE)])] == [2, 1]


def test_the_ladder_counts_layers_and_ends_at_the_outputs() -> None:
    sites = [
        SiteFacts(PLACE, heard_right=heard, spoilt_right=spoilt)
        for heard, spoilt in (("hidden", False), ("hidden", False), ("heard", False), ("hidden", True))
    ]
    output = OutputFacts(0, "logits", "f32", None, PaddingFacts("leaks", "safe"))
    rungs = ladder.ladder(ModelFacts("m.onnx", "onnx", outputs=[output], attention=AttentionFacts(sites=sites)), "right")
    assert [(rung.label, rung.state, rung.count) for rung in rungs] == [
        ("attention 1-2", "clean", 2),
        ("attention 3", "spoilt", 1),
        ("attention 4", "spoilt", 1),
        ("logits", "spoilt", 1),
    ]


@pytest.fixture(scope="module")
def big_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("big")
    proto = layered_model(780, unmasked=(3, 400, 401))
    assert len(proto.graph.node) > 10_000
    onnx.save(proto, folder / "big.onnx")
    (folder / "page.html").write_text(page(folder / "big.onnx"), encoding="utf-8")
    return folder / "page.html"


def test_a_model_of_ten_thousand_nodes_makes_a_small_page(big_page: Path) -> None:
    text = big_page.read_text(encoding="utf-8")
    assert len(text) < 200_000
    said = " ".join(outline(text).said)
    assert "Softmax ×777" in said  # noqa: RUF001
    assert "Softmax ×3" in said  # noqa: RUF001


def test_model_explorer_keys_nodes_and_tensors_by_name() -> None:
    path = SAMPLES / "mask/bert_mask_partial.onnx"
    results = json.loads(renderer("model-explorer")(wirelint.check(path, config=False), RenderOptions()))["results"]
    proto = onnx.load(path)
    names = {node.name for node in proto.graph.node} | {value.name for value in proto.graph.input}
    assert set(results) <= names
    assert results["/layer.1/attention/self/Softmax"]["value"] == "error WL203 mask-partial"
    assert results["/layer.0/attention/self/Softmax"]["value"] == "hides padding"
    assert results["attention_mask"]["value"] == "role: mask"
    assert all(re.fullmatch(r"#[0-9a-f]{6}", entry["bgColor"]) for entry in results.values())


def test_model_explorer_shows_one_model() -> None:
    report = wirelint.check([SAMPLES / "clean/cnn.onnx", SAMPLES / "clean/mlp.onnx"], config=False)
    with pytest.raises(ConfigurationError, match="name one file"):
        renderer("model-explorer")(report, RenderOptions())
