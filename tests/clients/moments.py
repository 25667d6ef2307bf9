"""What has to hold of the agents that gitledger runs within, moment by moment, and which tests show it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from tests.clients import results

HERE = Path(__file__).parent

MOMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "hermes": {
        "put in, looked at, taken out": ("test_a_person_puts_it_in_looks_at_it_and_takes_it_out",),
        "a session starts: the first request holds where things stand": (
            "test_a_turn_is_journalled_with_what_it_ran_and_the_first_prompt_is_given_where_things_stand",
        ),
        "twelve turns, two compactions, in place and by a new id": (
            "test_twelve_turns_and_two_compactions_leave_each_turn_once_and_the_capsule_behind_each",
        ),
        "`/new`, resume, undo": ("test_another_talk_a_resumed_one_and_an_undone_turn_are_told_as_such",),
        "killed in mid-turn, and right after a turn": (
            "test_what_a_kill_kept_from_the_ledger_is_made_good_once_by_whoever_starts_next",
        ),
        "a gateway's compaction, with memory skipped": (
            "test_a_compaction_by_an_agent_without_memory_makes_its_checkpoint_and_is_no_session_of_its_own",
        ),
        "no checkpoint can be made: nothing changes, the person is told": (
            "test_nothing_changes_without_a_checkpoint_and_all_is_handed_over_with_one",
            "test_by_a_new_id_none_is_made_and_the_person_who_says_compress_is_told_why",
        ),
        "a block that lasts": ("test_a_block_that_lasts_is_not_tried_again_at_every_turn",),
        "our package is gone": ("test_where_our_package_is_gone_hermes_says_so_and_compacts_nothing",),
        "rollover at the thresholds": (
            "test_at_the_thresholds_the_person_is_told_once_what_to_do_and_a_fresh_talk_is_handed_all",
        ),
        "one question on the command line": (
            "test_one_question_on_the_command_line_is_a_session_from_its_start_to_its_end",
        ),
        "no repository, or no ledger": (
            "test_a_folder_without_a_repository_or_without_a_ledger_gets_nothing",
            "test_a_clone_without_a_ledger_compacts_as_it_always_did",
        ),
    },
    "nanobot": {
        "on its SDK, from the start over a compaction to the end": (
            "test_a_talk_on_the_sdk_from_its_start_over_a_compaction_to_its_end",
        ),
        "no checkpoint can be made: nothing is compacted, the person is told": (
            "test_without_a_checkpoint_nothing_is_compacted_but_what_a_person_lets_through",
        ),
        "one request has grown too long": (
            "test_a_request_that_has_grown_too_long_is_compacted_behind_a_checkpoint_or_not_sent",
        ),
        "killed in mid-turn, and right after a turn": (
            "test_a_turn_that_was_killed_is_there_at_the_next_start",
            "test_a_turn_after_which_the_process_died_before_it_was_told_of_is_journalled_once",
            "test_its_own_program_killed_in_a_turn_and_right_behind_one",
        ),
        "two talks at once": ("test_two_talks_at_once_are_two_sessions_with_a_handover_each",),
        "`nanobot agent`, one message": (
            "test_one_message_by_its_own_program_is_a_session_from_the_briefing_to_the_handover",
        ),
        "`nanobot agent`, at its prompt: compaction, `/new`": (
            "test_at_its_prompt_a_compaction_waits_for_the_checkpoint_and_a_new_talk_is_handed_the_last_one",
        ),
        "the gateway": ("test_its_gateway_journals_every_talk_and_hands_them_over_at_its_end",),
        "what a person puts in: the plugin, a program on the SDK": (
            "test_the_plugin_is_enabled_by_nanobot_itself_and_its_skill_is_there_until_a_file_changes",
            "test_the_program_of_the_examples_keeps_a_ledger",
        ),
        "no ledger": ("test_a_repository_without_a_ledger_is_not_touched_and_compacts_as_it_always_did",),
        "memory files beside its Dream job": (
            "test_a_dream_between_a_proposal_and_its_application_stands",
            "test_a_dream_in_the_moment_of_the_exchange_stands",
            "test_a_dream_goes_on_from_the_changed_file_and_the_undo_puts_back_what_it_left_room_for",
            "test_a_dream_that_read_before_the_change_and_writes_after_it_loses_nobody_a_byte",
            "test_it_proposes_by_its_model_preset_what_is_compacted",
        ),
        "memory files, by the skill": ("test_its_agent_is_offered_the_skill_and_does_by_it_what_its_person_says",),
    },
}
"""Client → moment → the tests of it; a test that stands at no moment is listed behind them by its own words."""


def written(client: str) -> list[str]:
    """The tests of a client that gitledger runs within, in the order in which they are written."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        if results.within(path.name) == client:
            rows = ast.parse(path.read_text(encoding="utf-8")).body
            found += [row.name for row in rows if isinstance(row, ast.FunctionDef) and row.name.startswith("test_")]
    return found


def rows(client: str) -> list[tuple[str, tuple[str, ...]]]:
    """Each moment with its tests, and what else is tested."""
    named = {test for tests in MOMENTS[client].values() for test in tests}
    besides = [(sentence(test), (test,)) for test in written(client) if test not in named]
    return [*MOMENTS[client].items(), *besides]


def sentence(test: str) -> str:
    """A test's name as the words that it is made of."""
    return test.removeprefix("test_").replace("_", " ")
