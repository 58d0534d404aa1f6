# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The surveys of the job templates: how an option becomes a question, what AWX and ansible-core refuse, and the committed files."""

from __future__ import annotations

import re

import pytest
from gates.awx import (
    ROOT,
    describe,
    find_problems,
    make_question,
    problems_of_question,
    problems_of_survey,
    read_answer,
    read_objects,
)

TEXT = {"type": "text", "min": 0, "max": 1024}
COLLECTION_PLAYBOOK = re.compile(r"import_playbook: gpu\.kubernetes\.(\w+)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("option", "preset", "expected"),
    [
        ({"type": "str"}, False, TEXT),
        ({"type": "path", "required": True}, False, {**TEXT, "required": True}),
        ({"type": "str", "default": "runc"}, False, TEXT),
        ({"type": "str", "default": "runc"}, True, {**TEXT, "default": "runc"}),
        ({"type": "str", "choices": ["", "a", "b"]}, False, {"type": "multiplechoice", "choices": "a\nb"}),
        ({"type": "bool", "default": True}, False, {"type": "multiplechoice", "choices": "true\nfalse"}),
        (
            {"type": "bool", "default": True},
            True,
            {"type": "multiplechoice", "choices": "true\nfalse", "default": "true"},
        ),
        ({"type": "int", "default": 0}, False, {"type": "integer"}),
        ({"type": "int", "default": 0}, True, {"type": "integer", "default": 0}),
        ({"type": "float", "default": 0.5}, True, {"type": "float", "default": 0.5}),
        (
            {"type": "list", "elements": "str", "choices": ["a", "b"], "default": ["a", "b"]},
            True,
            {"type": "multiselect", "choices": "a\nb", "default": "a\nb"},
        ),
    ],
)
def test_question_has_type_choices_and_default_of_the_option(option, preset, expected):
    question = make_question("x", "Label", {"description": "Some text.", **option}, preset)
    base = {"question_name": "Label", "question_description": "Some text.", "required": False, "variable": "x"}
    assert question == {**base, **expected}


@pytest.mark.parametrize(
    ("option", "preset", "reason"),
    [
        ({"type": "dict"}, False, "no question of the type dict"),
        ({"type": "list", "elements": "str"}, False, "no question of the type list"),
        ({"type": "str", "default": ""}, True, "no default"),
        ({"type": "str"}, True, "no default"),
        ({"type": "str", "default": "{{ y }}"}, True, "no default"),
    ],
)
def test_option_that_no_answer_can_set_is_refused(option, preset, reason):
    with pytest.raises(ValueError, match=f"^x: .*{reason}"):
        make_question("x", "Label", {"description": "Some text.", **option}, preset)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Whether V(true).", "Whether true."),
        (['First, such as V("580"). Second.', "Third."], "First, such as 580."),
        (
            "Of the role P(gpu.kubernetes.mig#role), with O(mig_state=absent)",
            "Of the role gpu.kubernetes.mig, with mig_state=absent.",
        ),
    ],
)
def test_description_is_the_first_sentence_without_markup(description, expected):
    assert describe({"description": description}) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("580", 580),
        ("580.10", 580.1),
        ("580.95.05", "580.95.05"),
        ("", None),
        ("true", True),
        ("never", "never"),
        (3, 3),
    ],
)
def test_text_answers_are_read_again(answer, expected):
    assert read_answer(answer) == expected


@pytest.mark.parametrize(
    ("changes", "option", "problem"),
    [
        ({}, {"type": "str"}, None),
        ({"variable": "y"}, {"type": "str"}, None),
        ({"max": ""}, {"type": "str"}, "max is not a number"),
        ({"default": ""}, {"type": "str"}, "an empty default"),
        ({"default": "580"}, {"type": "str"}, "reads the answer '580' as int"),
        ({"type": "multiplechoice"}, {"type": "str"}, "no choices"),
        ({"type": "multiplechoice", "choices": "a\nno"}, {"type": "str"}, "reads the answer 'no' as bool"),
        ({"type": "multiplechoice", "choices": "true\nfalse"}, {"type": "bool"}, None),
        ({"type": "multiplechoice", "choices": "a", "default": "b"}, {"type": "str"}, "not among the choices"),
        ({"type": "multiselect", "choices": "a\nb", "default": "a"}, {"type": "list", "elements": "str"}, None),
    ],
)
def test_invalid_question_is_reported(changes, option, problem):
    question = {"question_name": "Label", "type": "text", "variable": "x", "required": False, "max": 9, **changes}
    found = list(problems_of_question(question, option))
    assert found == [] if problem is None else any(problem in each for each in found), found


def test_question_without_a_required_key_is_reported():
    assert list(problems_of_question({"variable": "x", "type": "text"}, {"type": "str"})) == [
        "x: no question_name, required"
    ]


@pytest.mark.parametrize(("variables", "problem"), [("ab", "not 3 to 8"), ("aabc", "two questions"), ("abc", None)])
def test_survey_has_three_to_eight_questions_of_different_variables(variables, problem):
    option = {"type": "str", "description": "Some text."}
    survey = {"spec": [make_question(name, name, option) for name in variables]}
    found = list(problems_of_survey(survey, dict.fromkeys(variables, option)))
    assert found == [] if problem is None else any(problem in each for each in found)


def test_committed_surveys_and_table_are_those_of_the_argument_specs():
    assert find_problems() == []


def test_each_job_template_has_a_playbook_of_the_example_and_each_playbook_a_job_template():
    folder = ROOT / "docs" / "examples" / "awx"
    templates = read_objects()["controller_templates"]
    assert {template["playbook"] for template in templates} == {path.name for path in folder.glob("*.yml")}
    for template in templates:
        [imported] = COLLECTION_PLAYBOOK.findall((folder / template["playbook"]).read_text())
        assert (ROOT / "playbooks" / f"{imported}.yml").is_file()
