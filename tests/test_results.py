"""Test results out of what test tools print: their own outputs, and outputs that mean harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitledger import results
from gitledger.results import Result
from tests.hostile import BIG, CORPUS, TYPES

OUTPUTS = Path(__file__).parent / "data" / "results"
"""What the tools printed, each with a test that passed, failed, was skipped and more; Go's by its documentation."""
PRINTED = {
    "pytest.txt": Result("pytest", 2, 2, 2),
    "pytest-q-colour.txt": Result("pytest", 2, 2, 2),
    "pytest-none.txt": Result("pytest"),
    "pytest-junit.xml": Result("JUnit", 2, 2, 2),
    "unittest.txt": Result("unittest", 1, 2, 2),
    "jest.txt": Result("jest", 1, 1, 2),
    "vitest-colour.txt": Result("vitest", 1, 1, 2),
    "cargo.txt": Result("cargo test", 2, 1, 1),
    "go.txt": Result("go test", 2, 1, 1, "packages"),
    "go-v.txt": Result("go test", 2, 1, 1),
    "go-json.txt": Result("go test", 1, 1, 1),
}
LINES = {
    "3 passed in 0.12s": Result("pytest", 3),
    "no tests ran in 0.00s": Result("pytest"),
    "=== 12 passed, 3 warnings in 75.20s (0:01:15) ===": Result("pytest", 12),
    "Ran 2 tests in 0.001s\n\nOK": Result("unittest", 2),
    "Ran 0 tests in 0.000s\n\nNO TESTS RAN": Result("unittest"),
    "Ran 3 tests in 0.001s\n\nOK (skipped=1)": Result("unittest", 2, 0, 1),
    "Tests:       3 passed, 3 total": Result("jest", 3),
    "     Summary [   0.123s] 4 tests run: 3 passed, 1 failed, 1 skipped": Result("cargo nextest", 3, 1, 1),
    "ok  \texample.org/a\t0.003s": Result("go test", 1, unit="packages"),
}


def test_what_each_tool_printed_is_counted_as_it_counts() -> None:
    assert {file.name for file in OUTPUTS.iterdir()} == set(PRINTED)
    for name, counted in PRINTED.items():
        assert results.read((OUTPUTS / name).read_text("utf-8")) == (counted,), name
    for text, counted in LINES.items():
        assert results.read(f"before\n{text}\nafter\n") == (counted,), text
        assert results.read(text.replace("\n", "\r\n")) == (counted,), text


@pytest.mark.parametrize(
    "text",
    [
        "I think that 3 tests passed in the end",
        "3 passed",
        "3 passed in time",
        "x passed in 1s",
        "3 passed, 4 eaten in 1s",
        "99999999999 passed in 1s",
        "-3 passed in 1s",
        "³ passed in 1s",
        "Ran many tests in 1s\n\nOK",
        "Ran 3 tests in 1s\n\nwell",
        "Tests: all total",
        "test result: great. 3 passed",
        "FAIL: it did",
        '{"Action":"pass","Test":7}',
        '{"Action":"pass","Test":' + "[" * 900,
        "<testsuite>",
        "<testsuite></testsuite>",
        "<testsuite><testcase></testsuite>",
    ],
)
def test_what_only_looks_like_a_result_is_none(text: str) -> None:
    assert results.read(text) == ()


CASES = "<testsuite>" + "<testcase/>" * 3 + "<testcase><failure/><error/></testcase></testsuite>"
LAUGHS = "<!DOCTYPE t [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(12)
)


def test_a_report_between_other_lines_is_read_and_its_own_sums_are_not_believed() -> None:
    text = f"$ cat report.xml\n<?xml version='1.0' encoding='utf-16'?>\n{CASES}\nthe end"
    assert results.read(text) == (Result("JUnit", 3, 1),)
    lying = CASES.replace("<testsuite>", '<testsuite tests="99" failures="0">')
    assert results.xml(lying) == Result("JUnit", 3, 1)


def test_no_entity_is_expanded_and_nothing_is_fetched() -> None:
    for before, inside in (
        (f"{LAUGHS}]>", "<testcase>&m;</testcase>"),
        ("<!DOCTYPE t SYSTEM 'http://127.0.0.1:1/x'>", "<testcase>&x;</testcase>"),
        ("<!DOCTYPE t [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>", "<testcase>&x;</testcase>"),
        ("", f"{LAUGHS}]><testcase>&m;</testcase>"),
        ("", "<!DOCTYPE x><testcase/>"),
    ):
        assert results.read(f"{before}<testsuite>{inside}</testsuite>") == ()
    # A document type that nothing refers to is not even read: the report begins at its root.
    assert results.read(f"{LAUGHS}]>{CASES}") == (Result("JUnit", 3, 1),)


def test_hostile_and_huge_outputs_give_no_result_and_come_back() -> None:
    size = 1 << 18
    huge = [
        *BIG.values(),
        "<testsuite " * (size // 11),
        "<testsuite>" + "<a>" * (size // 3) + "</testsuite>",
        "<testsuite" + " a='" * (size // 4) + "</testsuite>",
        "3 passed, " * (size // 10) + "in 1s",
        "=" * size + " 3 passed in 1s " + "=" * size,
        "\x1b[" + "0;" * size,
        "\x1b[1" * size,
        "Ran 3 tests in 1s\n" * (size // 18),
        "Tests:" + " " * size + "total",
        '{"Action":' * (size // 10),
        ('{"Action":"x","Test":"y"}\n') * (size // 27),
        "ok  \t" * size,
        "Summary [" * (size // 9),
        "1 " * size + " in 1s",
    ]
    for text in [*huge, *CORPUS.values()]:
        for one in results.read(text):
            assert (
                one.tool == "go test"
            )  # `ok  <tab>` is what a package says; a hundred thousand times on one line is one


def test_what_another_program_set_is_said_without_it() -> None:
    for odd in TYPES:
        assert isinstance(results.words(odd), str)
        assert list(results.listed(odd)) == []
        assert results.failed(odd) is False
        assert isinstance(results.words({"tool": odd, "passed": odd, "failed": odd, "unit": odd}), str)
    assert results.words(Result("pytest", 1_000, 2).value()) == "pytest: 1,000 passed, 2 failed"
    assert results.failed([Result("pytest", 1, 1).value()])
