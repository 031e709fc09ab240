"""Rule files: what is refused names file, line and cause; the built-in rules are in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

from wirelint.errors import ConfigurationError
from wirelint.findings import Confidence, Severity
from wirelint.located import read_yaml
from wirelint.rules import FAMILIES, Rule, builtin_folder, load_rules
from wirelint.rules.schema import read_rule

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("changes", "line", "cause"),
    [
        ({"wen": "input.used"}, 11, "unknown key 'wen'; did you mean 'when'?"),
        ({"why": None}, 1, "the key 'why' is missing"),
        ({"confidence": None}, 1, "the key 'confidence' is missing"),
        ({"id": "Some_Rule"}, 1, "id must be words in small letters"),
        ({"code": "X1"}, 2, "code must be"),
        ({"code": "WL101"}, 2, "choose another prefix"),
        ({"for": "inputs"}, 3, "for must not be 'inputs'; did you mean 'input'?"),
        ({"when": "input.rolle == 'x'"}, 4, "in 'when': 'input' has no field 'rolle'; did you mean 'role'?"),
        ({"when": "model.mask"}, 4, "'model.mask' is always true"),
        ({"when": "true"}, 4, "when must be text, not true or false; write it in quotes"),
        ({"severity": "fatal"}, 5, "severity must not be 'fatal'; known are: error, note, warning"),
        ({"severity": "[]"}, 5, "'severity' has no case"),
        ({"severity": "[{severity: error}, {severity: note}]"}, 5, "only the last case may be without 'when'"),
        ({"severity": "[{when: input.x, severity: error}]"}, 5, "in 'when': 'input' has no field 'x'"),
        ({"severity": "[{when: input.used}]"}, 5, "the case has no 'severity'"),
        ({"severity": "[{severity: error}]", "confidence": None}, 5, "neither this case nor the rule has a 'confidence'"),
        ({"message": '"{input.nam}"'}, 7, "in 'message': 'input' has no field 'nam'"),
        ({"mend": '""'}, 10, "mend must not be empty"),
        ({"since": "0.1"}, 11, "since must be text, not a number; write it in quotes"),
        ({"where": "input.role"}, 11, "where must be a place"),
        ({"evidence": "input.index"}, 11, "evidence must be a collection of texts"),
        ({"trace": "input.evidence"}, 11, "trace must be a collection of texts"),
        ({"once": "often"}, 11, "once must be true or false, not text"),
        ({"same": "entity"}, 11, "there is no 'unless'"),
        ({"examples": "{bda: []}"}, 11, "unknown key 'bda'; did you mean 'bad'?"),
        ({"references": "http://x"}, 11, "references must be a list of texts, not text"),
        ({"what": "a\nid: again"}, 9, "the key 'id' stands here a second time"),
        ({"what": "}"}, 8, "no valid YAML"),
        ({"what": "!!python/object/apply:os.system [ls]"}, 8, "what must be text"),
        ({"how_we_know": "['{input.x}']"}, 11, "in 'how_we_know': 'input' has no field 'x'"),
    ],
)
def test_an_error_names_file_line_and_cause(
    read: Callable[..., Rule], tmp_path: Path, changes: dict[str, str | None], line: int, cause: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**changes)
    assert str(caught.value).startswith(f"{tmp_path / 'rules' / 'rule.yaml'}:{line}: ")
    assert cause in str(caught.value)


def test_an_alias_bomb_is_refused(read: Callable[..., Rule]) -> None:
    bomb = "a: &a [x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9))
    with pytest.raises(ConfigurationError, match="too large or nested too deeply"):
        read(what="x\n" + bomb)


def test_builtin_codes_belong_to_the_family(read: Callable[..., Rule]) -> None:
    with pytest.raises(ConfigurationError, match="codes of the family 'mask' start with WL2"):
        read(family="mask", builtin=True, code="WL101")
    assert read(family="mask", builtin=True, code="WL201").code == "WL201"


def test_cases_take_the_rules_confidence(read: Callable[..., Rule]) -> None:
    rule = read(severity="[{when: input.used, severity: note}, {severity: error, confidence: low}]")
    assert [(case.severity, case.confidence) for case in rule.cases] == [
        (Severity.NOTE, Confidence.HIGH),
        (Severity.ERROR, Confidence.LOW),
    ]
    assert (rule.severity, rule.confidence) == (Severity.ERROR, Confidence.LOW)


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ([{"id": "rule-a"}, {"id": "rule-a", "code": "OWN002"}], "'rule-a' is taken by the rule in"),
        ([{"id": "rule-a"}, {"id": "rule-b"}], "'OWN001' is taken by the rule in"),
        ([{"id": "unused-input"}], "'unused-input' is taken by the rule in"),
        ([{"unless": "[unused-inptu]"}], "no rule is called 'unused-inptu'; did you mean 'unused-input'?"),
        ([{"unless": "[unreadable]", "same": "entity"}], "so they never meet at the same entity"),
        ([{"id": "a", "unless": "[b]"}, {"id": "b", "code": "OWN002", "unless": "[a]"}], "'unless' goes round in a circle"),
    ],
)
def test_contradictions_between_files_are_refused(
    write_rule: Callable[..., Path], files: list[dict[str, str]], cause: str
) -> None:
    paths = [write_rule(f"file{index}", **changes) for index, changes in enumerate(files)]
    with pytest.raises(ConfigurationError) as caught:
        load_rules((paths[0].parent,))
    assert cause in str(caught.value)


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no rule file"):
        load_rules((tmp_path,))
    with pytest.raises(ConfigurationError, match="no such folder of rules"):
        load_rules((tmp_path / "nowhere",))


def test_a_team_rule_joins_the_builtin_ones(write_rule: Callable[..., Path]) -> None:
    rules = load_rules((write_rule().parent,))
    assert rules.select("some-rule") == rules.select("OWN001") == rules.select("OWN") == {"some-rule"}
    assert rules.select("all") > rules.select("inputs") >= {"unused-input"}
    with pytest.raises(ConfigurationError, match="no rule is called 'unused-inputs'; did you mean 'unused-input'"):
        rules.select("unused-inputs")


BUILTIN = sorted(builtin_folder().rglob("*.yaml"))


@pytest.mark.parametrize("path", BUILTIN, ids=lambda path: path.stem)
def test_builtin_rules_are_complete(path: Path) -> None:
    rule = read_rule(read_yaml(path), path.parent.name, builtin=True)
    assert path.stem == rule.id
    assert rule.family in FAMILIES
    assert rule.since


@pytest.mark.parametrize("path", BUILTIN, ids=lambda path: path.stem)
def test_builtin_rules_follow_the_published_schema(path: Path) -> None:
    schema = json.loads((DOCS / "rule.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(path.read_text()))


def test_the_published_schema_knows_the_same_keys() -> None:
    from wirelint.rules import schema

    published = json.loads((DOCS / "rule.schema.json").read_text())
    assert set(published["properties"]) == set(schema._KEYS)
    assert set(published["required"]) == set(schema._REQUIRED)
    assert set(published["$defs"]["case"]["properties"]) == set(schema._CASE_KEYS)


def test_every_problem_of_a_file_has_its_rule() -> None:
    """A reader may raise each of these; one that no rule reports would be an internal fault."""
    assert {path.stem for path in BUILTIN if path.parent.name == "file"} >= {
        "unreadable",
        "lfs-pointer",
        "missing-weights",
        "weights-out-of-bounds",
        "external-path-escape",
        "graph-cycle",
        "invalid-graph",
    }
