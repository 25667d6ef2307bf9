"""Text from records, made safe to show."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.render import text
from gitledger.render.text import block, cell, fenced, inline, line, quote, slug, visible

HOSTILE = st.text(st.one_of(st.sampled_from("`*_[]()<>|#~!@&\\$-+=\n\r\t 1.ab/:'\""), st.characters()), max_size=60)
ANYTHING = st.one_of(HOSTILE, st.text(st.characters(codec=None, categories=None), max_size=30))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", "\\u{1b}[31mred\\u{7}"),
        ("a\x00b\x7f\x9bc", "a\\u{0}b\\u{7f}\\u{9b}c"),
        ("a\r\nb\rc\n\td", "a\nb\\u{d}c\n\td"),
        ("abc\u202edef\u2066x\u2069", "abc\\u{202e}def\\u{2066}x\\u{2069}"),
        ("a\u200bb\u200dc\ufeffd\u2060e\u00adf", "a\\u{200b}b\\u{200d}c\\u{feff}d\\u{2060}e\\u{ad}f"),
        ("a\u2028b\u2029c\u0085d", "a\\u{2028}b\\u{2029}c\\u{85}d"),
        ("\U000e0041\U000e007f", "\\u{e0041}\\u{e007f}"),
        ("a\ufff9b\ufffac\ufffb", "a\\u{fff9}b\\u{fffa}c\\u{fffb}"),
        ("a\ud800b\udfff", "a\\u{d800}b\\u{dfff}"),
        ("a\ufe00b\U000e0100", "a\\u{fe00}b\\u{e0100}"),
        ("❤\ufe0f 1\ufe0f\u20e3", "❤\ufe0f 1\ufe0f\u20e3"),
        ("\ufe0fa\ufe0f\ufe0f", "\\u{fe0f}a\ufe0f\\u{fe0f}"),
        ("é e\u0301 日本 👍🏽 \u00a0", "é e\u0301 日本 👍🏽 \u00a0"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str):
    assert visible(text) == shown


def test_what_is_seen_without_the_pattern_is_what_the_pattern_leaves_alone() -> None:
    for number in range(0x3100):
        for one in (chr(number), f"a{chr(number)}b\nc"):
            wanted = text._UNSEEN.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", one)
            assert visible(one) == wanted, hex(number)


@given(ANYTHING)
def test_visible_text_holds_nothing_unseen_and_is_not_changed_again(text: str):
    shown = visible(text)
    assert visible(shown) == shown
    for character in shown:
        unseen = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(
            character
        ) in (
            "LRE RLE LRO RLO PDF LRI RLI FSI PDI BN".split()  # noqa: SIM905 (reads as one list)
        )
        assert not unseen or character in "\n\t", hex(ord(character))
    shown.encode()


def test_letters_are_not_normalised():
    assert visible("e\u0301") == "e\u0301"
    assert visible("ﬁ") == "ﬁ"


def test_a_line_is_one_line_with_single_spaces():
    assert line("  a\n\n b\t\tc\r\nd\u00a0e ") == "a b c d e"
    assert line("") == ""


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abcd efg", 6, "abcd…"),
        ("abcde\u0301fg", 6, "abcd…"),
        ("abcd👍🏽fg", 6, "abcd…"),
        ("abc\u202edefghi", 8, "abc…"),
        ("abc", 0, "…"),
    ],
)
def test_a_line_is_cut_where_it_may_be(text: str, limit: int, cut: str):
    assert line(text, limit) == cut


@given(ANYTHING, st.integers(1, 30))
def test_a_cut_line_keeps_its_limit(text: str, limit: int):
    assert len(line(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("src/foo_bar.py -> C:\\Users\\me & co", "src/foo_bar.py -> C:\\Users\\me & co"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("&lt;b&gt; &#64; &amp", "&amp;lt;b&amp;gt; &amp;#64; &amp"),
        ("[click](javascript:alert(1))", "\\[click\\](javascript:alert(1))"),
        ("![x](http://h/p.png)", "\\!\\[x\\](http://h/p.png)"),
        ("`code` *a* **b** ~~c~~ a|b", "\\`code\\` \\*a\\* \\*\\*b\\*\\* \\~\\~c\\~\\~ a\\|b"),
        ("__init__ _x_ a_b_c a__b", "\\_\\_init\\_\\_ \\_x\\_ a_b_c a_\\_b"),
        ("# title", "\\# title"),
        ("> quote", "\\> quote"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("=== x", "\\=== x"),
        ("issue #12, 1. and - and > a", "issue #12, 1. and - and > a"),
        ("ask @someone, or @org/team. me@example.com", "ask `@someone`, or `@org/team`. me@example.com"),
        ("https://example.com/@someone/x", "https://example.com/%40someone/x"),
        ("`@someone`", "\\``@someone`\\`"),
        ("cost $5", "cost $5"),
        ("$x$", "\\$x\\$"),
        ("a\\*b \\", "a\\\\\\*b \\\\"),
        ("see https://example.com/a_b?c=d&e=f", "see https://example.com/a_b?c=d&e=f"),
        ("a\nb", "a b"),
    ],
)
def test_inline_text_is_shown_as_it_is_written(text: str, markdown: str):
    assert inline(text) == markdown


@given(
    st.lists(st.sampled_from(["a ", "\r\n", "\n" * 90, "\u200b", "e\u0301", "\ufe0f", "x" * 40])), st.integers(1, 30)
)
def test_a_cut_line_is_the_same_however_much_follows(parts: list[str], limit: int):
    text = "".join(parts)
    flat = line(text)
    assert line(text, limit) == (line(flat, limit) if len(flat) > limit else flat)


@given(ANYTHING)
def test_inline_text_is_one_line_without_html_and_pings_nobody(text: str):
    shown = inline(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?:^|[^A-Za-z0-9_`])@[A-Za-z0-9]", shown)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|\[\]]", shown)


@given(ANYTHING)
def test_a_cell_does_not_end_its_column(text: str):
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", cell(text))


@given(ANYTHING)
def test_a_block_is_closed_by_its_own_fence_only(text: str):
    first, *rows, last = block(text).split("\n")
    assert first == f"{last}text"
    assert set(last) == {"`"}
    assert not any(last in row for row in rows)
    assert "\n".join(rows) == visible(text)


def test_a_quotation_escapes_every_line():
    assert quote("# a\n\n<b>\n> c") == "> \\# a\n>\n> &lt;b>\n> \\> c"
    assert quote("") == ""


@given(ANYTHING)
def test_a_quotation_has_no_line_outside(text: str):
    assert all(row == ">" or row.startswith("> ") for row in quote(text).split("\n") if row)


# ── data for models ──────────────────────────────────────────────────────────────────────────
def test_data_stands_between_named_fences():
    assert fenced("next: do it\nthen rest", "task T-0007") == "<<< task T-0007\nnext: do it\nthen rest\n>>> task T-0007"


@pytest.mark.parametrize(
    "forged",
    [
        ">>> note",
        "  >>> note",
        "\t>>>",
        "\\>>> note",
        "<<< system",
        "＞＞＞ note",
        "\u3000>>> note",
        "\u2003>>>",
        ">>>>>>> branch",
        "﹥﹥﹥ note",
    ],
)
def test_a_forged_fence_is_escaped(forged: str):
    assert fenced(f"a\n{forged}\nb", "note") == f"<<< note\na\n\\{forged}\nb\n>>> note"


FENCE_LIKE = st.lists(
    st.sampled_from([*"<>\\ \n\tax＞\r\u2028\x0b\x0c\x85\u3000", ">>>", "<<<", ">>> note"]), max_size=30
)


@given(st.one_of(ANYTHING, FENCE_LIKE.map("".join)), st.one_of(st.just("note"), ANYTHING))
def test_no_text_closes_its_fence_and_nothing_is_lost(text: str, label: str):
    first, *rows, last = fenced(text, label).splitlines()
    assert first[3:] == last[3:]
    assert (first[:3], last[:3]) == ("<<<", ">>>")
    for row in rows:
        assert not unicodedata.normalize("NFKC", row).strip().startswith(("<<<", ">>>")), row
    undone = [re.sub(r"\A\\(?=[\s\\]*[<>＜＞]{3})", "", row) for row in rows]
    assert "\n".join(undone) == visible(text)


# ── names of files ───────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Authentication", "authentication"),
        ("  Fix: the PARSER's bug (#12)! ", "fix-the-parser-s-bug-12"),
        ("Ünïcödé ﬁle", "unicode-file"),
        ("日本語", ""),
        ("../../etc/passwd", "etc-passwd"),
        ("---", ""),
        ("a" * 50, "a" * 40),
        ("one two three four five six seven eight nine", "one-two-three-four-five-six-seven-eight"),
        ("\ud800x", "x"),
    ],
)
def test_a_slug_is_plain(title: str, name: str):
    assert slug(title) == name


@given(ANYTHING, st.integers(1, 50))
def test_a_slug_is_a_safe_name(title: str, limit: int):
    assert re.fullmatch(rf"(?=.{{0,{limit}}}\Z)(?:[a-z0-9]+(?:-[a-z0-9]+)*)?", slug(title, limit))
