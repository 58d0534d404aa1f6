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

#: The keys of each object that infra.aap_configuration reads, by the variable with the objects: in the tasks of its roles controller_*, at commit f2302146 of
#: github.com/redhat-cop/infra.aap_configuration.
KEYS = {
    "controller_execution_environments": "name new_name description image organization credential pull state",
    "controller_credential_types": "name new_name description kind inputs injectors state",
    "controller_projects": "name new_name copy_from description organization scm_type scm_url local_path scm_branch scm_refspec scm_credential credential "
    "scm_clean scm_delete_on_update scm_track_submodules scm_update_on_launch scm_update_cache_timeout allow_override job_timeout timeout "
    "default_environment custom_virtualenv signature_validation_credential update_project wait interval state",
    "controller_inventory_sources": "name new_name description organization inventory source source_path source_project source_vars scm_branch credential "
    "execution_environment custom_virtualenv host_filter enabled_var enabled_value limit overwrite overwrite_vars timeout update_cache_timeout "
    "update_on_launch verbosity state",
    "controller_templates": "name new_name copy_from description organization project playbook inventory credentials execution_environment instance_groups "
    "labels job_type job_slice_count allow_simultaneous survey survey_spec survey_enabled extra_vars forks limit verbosity timeout job_tags skip_tags "
    "scm_branch become_enabled diff_mode use_fact_cache force_handlers start_at_task host_config_key webhook_service webhook_credential "
    "ask_job_type_on_launch ask_tags_on_launch ask_skip_tags_on_launch ask_limit_on_launch ask_variables_on_launch ask_diff_mode_on_launch "
    "ask_inventory_on_launch ask_credential_on_launch ask_verbosity_on_launch ask_scm_branch_on_launch state",
    "controller_workflows": "name new_name copy_from description organization inventory labels allow_simultaneous survey survey_spec survey_enabled extra_vars "
    "limit job_tags skip_tags scm_branch simplified_workflow_nodes workflow_nodes destroy_current_nodes webhook_service webhook_credential state",
}
STEP_KEYS = (
    "identifier unified_job_template lookup_organization workflow_job_template approval_node job_type limit job_tags skip_tags diff_mode verbosity "
    "inventory credentials execution_environment extra_data scm_branch labels timeout all_parents_must_converge success_nodes failure_nodes always_nodes state"
)


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


def test_infra_aap_configuration_reads_each_key_of_the_objects():
    objects = read_objects()
    # Two of the lists are templates with one object.
    named = re.findall(r"'(\w+)':", objects["controller_execution_environments"])
    objects["controller_execution_environments"] = [dict.fromkeys(named)]
    objects["controller_inventory_sources"] = [objects["__awx_objects_source"]]
    assert set(KEYS) == {name for name in objects if name.startswith("controller_")}
    for name, keys in KEYS.items():
        assert objects[name]
        assert {key for each in objects[name] for key in each} <= set(keys.split()), name
    steps = [step for each in objects["controller_workflows"] for step in each["simplified_workflow_nodes"]]
    assert {key for step in steps for key in step} <= set(STEP_KEYS.split())
