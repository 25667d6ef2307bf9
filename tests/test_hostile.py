"""Hostile text in documents, briefings and commits: read as a Markdown renderer, a model and git would read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gitledger import capture, codec, ingest, objects, schema, tasks, terminal, yamlfile
from gitledger.clients import generic
from gitledger.model import Json
from gitledger.render.page import prose, said
from gitledger.render.text import inline, line, visible
from gitledger.schema import Config
from tests.hostile import CORPUS, TYPES, UNMARKED, records, unseen
from tests.test_graph import ROW
from tests.test_tree import Tree, genesis

ANCHOR = re.compile(r'<a id="[a-z0-9-]+">\Z')


@cache
def reader() -> MarkdownIt:
    """CommonMark with HTML allowed, and what git hosts add to it."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


# ── documents ────────────────────────────────────────────────────────────────────────────────
def everything(text: Json) -> Tree:
    """The documents of a ledger that has `text` in every field of every record."""
    me, _ = genesis()
    # as ingest does: no JSON line holds half a character
    kept = text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text
    me.say(records(kept, me.at()))
    return {unslugged(path): data for path, data in me.files.items() if path.endswith(".md")}


def unslugged(path: str) -> str:
    """A path with the folder of a task by its number alone: the words behind it are made of its title."""
    return re.sub(r"(T-\d{4})-[a-z0-9-]{1,60}/", r"\1/", path)


def walk(tokens: Iterable[Token]) -> Iterable[Token]:
    for token in tokens:
        yield token
        yield from walk(token.children or ())


def shape(tokens: Sequence[Token]) -> list[str]:
    """The block structure of a document: headings with their level and words, tables by column, lists by item.

    Paragraphs and fences that follow each other are one `text`: how text is laid out is its own to say.
    """
    found: list[str] = []
    heading = ""
    for token in tokens:
        if token.type == "heading_open":
            heading = token.tag
        elif token.type == "heading_close":
            heading = ""
        if token.type == "inline" and heading:
            found.append(token.content if heading != "h1" else "title")  # the record's own; all others are ours
        elif token.type not in ("inline", "fence", "paragraph_open", "paragraph_close"):
            found.append(token.type)
    return found


def links(tokens: Sequence[Token]) -> list[str]:
    return [unslugged(str(t.attrs["href"])) for t in walk(tokens) if t.type == "link_open"]


@cache
def harmless() -> dict[str, tuple[list[str], list[str]]]:
    """The structure and the links of every document while all texts are one plain word."""
    parsed = {path: reader().parse(data.decode()) for path, data in everything("word").items()}
    return {path: (shape(tokens), links(tokens)) for path, tokens in parsed.items()}


def assert_safe(path: str, data: bytes) -> list[Token]:
    """No HTML but our anchors, nothing that is loaded or hidden, no fence that swallows what follows; its tokens."""
    text = data.decode()
    assert unseen(text) == []
    tokens = reader().parse(text)
    for token in walk(tokens):
        assert token.type not in ("html_block", "image", "code_block", "hr"), (path, token)
        if token.type == "html_inline":
            assert ANCHOR.match(token.content) or token.content == "</a>", (path, token)
        if token.type == "fence":
            assert token.info in ("text", "sh", "mermaid"), (path, token)
            if token.info == "mermaid":  # a host runs it: no line of it but those that the map is made of
                first, *rows = token.content.rstrip("\n").split("\n")
                assert first == "flowchart LR"
                assert [row for row in rows if not ROW.fullmatch(row)] == []
            assert token.map is not None
            # a fence that nobody closes would swallow the rest of the document
            assert text.split("\n")[token.map[1] - 1].lstrip("> ") == token.markup
    return tokens


# What is no Markdown is tried in one piece, in the middle and at both ends of a line.
TOGETHER = {"controls": " ".join(text for name, text in CORPUS.items() if name.startswith(UNMARKED))}
APART = {name: text for name, text in CORPUS.items() if not name.startswith(UNMARKED)}


@pytest.mark.parametrize("text", (TOGETHER | APART).values(), ids=TOGETHER | APART)
def test_no_text_makes_html_a_link_a_heading_or_a_list_in_any_document(text: str):
    for path, data in everything(text).items():
        tokens = assert_safe(path, data)
        assert (shape(tokens), links(tokens)) == harmless()[path], path


@pytest.mark.parametrize("value", TYPES, ids=repr)
def test_a_field_of_any_kind_keeps_no_document_from_being_rendered(value: Json):
    documents = everything(value)
    assert documents.keys() >= {"INDEX.md", "PROJECT.md", "tasks/00xx/T-0001/TASK.md", "handovers/0000xx/H-000001.md"}
    for path, data in documents.items():
        assert_safe(path, data)


# ── pieces ───────────────────────────────────────────────────────────────────────────────────
PIECES = st.one_of(
    st.sampled_from(
        [*"`*_[]()<>|#~!@&\\$-+=:;'\"\n\t 1.ab/", "](", "![", "<!--", "&lt;", "&#", "**", "__", "\\|", "1. "]
    ),
    st.characters(),
)
ANY = st.one_of(st.sampled_from(list(CORPUS.values())), st.lists(PIECES, max_size=30).map("".join))


@settings(deadline=None)
@given(ANY)
def test_one_line_of_markdown_shows_what_was_written_and_nothing_else(text: str):
    plain = line(text)
    if "@" in plain:  # a mention is shown as code, or as %40 in an address: both are tested by name
        plain = plain.replace("@", "at")
    for before in ("", "- ", "# ", "> ", "word "):
        tokens = list(walk(reader().parse(before + inline(plain))))
        seen = "".join(t.content for t in tokens if t.type in ("text", "text_special"))
        assert seen.strip() == f"{before.lstrip('#-> ')}{plain}".strip(), (before, inline(plain))


@settings(deadline=None)
@given(ANY)
def test_prose_is_paragraphs_or_one_fence_and_keeps_every_line(text: str):
    tokens = list(walk(reader().parse(prose(text))))
    kinds = {t.type for t in tokens} - {"paragraph_open", "paragraph_close", "inline"}
    assert kinds <= {"text", "text_special", "code_inline", "hardbreak"} or kinds == {"fence"}
    if kinds == {"fence"}:
        assert tokens[0].content == visible(text).strip("\n") + "\n"
    else:
        rows = [row for row in visible(text).split("\n") if line(row)]
        assert sum(t.type in ("hardbreak", "paragraph_open") for t in tokens) == len(rows)
    inside = list(walk(reader().parse(said(text))))
    assert {t.type for t in inside} - {t.type for t in tokens} <= {"blockquote_open", "blockquote_close"}


# ── the documentation ────────────────────────────────────────────────────────────────────────
def test_the_documentation_names_every_class_of_the_corpus_and_no_other():
    text = (Path(__file__).parent.parent / "docs" / "hostile-text.md").read_text()
    rows = text.split("## The classes")[1].split("##")[0].splitlines()
    named = [found[1] for row in rows if (found := re.match(r"\| `([a-z]+)` \|", row))]
    assert named == [*dict.fromkeys(name.partition(": ")[0] for name in CORPUS), "big"]


def test_the_bounds_in_the_documentation_are_those_of_the_code():
    text = (Path(__file__).parent.parent / "docs" / "hostile-text.md").read_text()
    bounds = text.split("## Bounds")[1].split("##")[0]
    for name, number in (
        ("a payload", capture.LIMIT), ("a prompt", Config().capture.limit), ("any other text", ingest.TEXT_LIMIT),
        ("a title", tasks.TITLE_LIMIT), ("files, commands", schema.ITEMS_KEPT), ("faults", generic.FAULTS_KEPT),
        ("nesting", codec.NESTING), ("a configuration", yamlfile.DEEPEST), ("an error", terminal.LONGEST),
        ("a briefing", Config().briefing.chars), ("an event", ingest.EVENT_LIMIT // 1024),
        ("a change set", schema.LONGEST >> 20), ("a file", objects.BLOB_LIMIT >> 20),
    ):  # fmt: skip
        row = next(row for row in bounds.splitlines() if row.startswith(f"| {name}"))
        assert f"{number:,}" in re.findall("[0-9]+(?:,[0-9]{3})*", row), row
