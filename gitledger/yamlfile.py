"""A file of YAML tables, read with the line of every key, and edited without touching anything else in it."""

from __future__ import annotations

import json
import re

from gitledger.errors import BadConfig
from gitledger.model import Json
from gitledger.typed import Any
from gitledger.values import dataclass

DEEPEST = 20
"""Levels of tables and lists in a file; no setting has more than three."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file read: its text, its tables as plain values, the line (from 1) of each dotted key, and YAML's own root."""

    text: str
    values: dict[str, Json]
    lines: dict[str, int]
    root: Any


def parse(path: str, data: bytes) -> Document:
    """The YAML in `data`; raise BadConfig for anything but tables of plain values, naming the line."""
    import yaml

    try:
        text = data.decode("utf-8-sig")
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise BadConfig(f"{path} uses YAML aliases (*name), which are not read here; write the value out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:  # asked before more is read: YAML's reader takes time by the square of the depth
                raise BadConfig(f"{path} is nested deeper than {DEEPEST} levels; mend the file")
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None or (isinstance(root, yaml.ScalarNode) and root.value == ""):
            return Document(text, {}, {}, None)
        if not isinstance(root, yaml.MappingNode):
            raise BadConfig(f"{path} is no table of keys; write lines such as: briefing: {{lines: 60}}")
        lines: dict[str, int] = {}
        values = _table(path, loader, root, "", lines)
        return Document(text, values, lines, root)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        at = f"{path}: line {mark.line + 1}" if mark else path
        raise BadConfig(f"{at} is not YAML ({e.problem or e.context}); mend the file") from e
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:
        reason = " ".join(str(e).split())
        raise BadConfig(f"{path} is not readable YAML ({reason}); mend the file") from e
    except (AttributeError, IndexError, KeyError) as e:  # what YAML's own reader raises for `!!bool maybe`, `!!int ''`
        raise BadConfig(f"{path} holds a value that is not of the type its tag names; take the tag (!!) out") from e


def _table(path: str, loader: Any, node: Any, prefix: str, lines: dict[str, int]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        key = name.value if name.id == "scalar" else ""
        if not key:
            raise BadConfig(f"{path}: line {line}: a key is a word; mend the file")
        dotted = f"{prefix}{key}"
        if dotted in lines:
            raise BadConfig(f"{path}: line {line}: {dotted} stands here again, after line {lines[dotted]}; keep one")
        lines[dotted] = line
        if value.id == "mapping" and not prefix:
            found[key] = _table(path, loader, value, f"{dotted}.", lines)
        else:
            found[key] = loader.construct_object(value, deep=True)
    return found


def _shown(value: Json) -> str:
    """A value as YAML, on one line."""
    words = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][A-Za-z0-9_./-]*", value) and value.lower() not in words:
        return value
    return json.dumps(value, ensure_ascii=False)


def with_value(document: Document, section: str, key: str, value: Json) -> str:
    """The text with one value set, or "" where its place cannot be told; whoever calls compares what it then says."""
    text, root, shown = document.text, document.root, _shown(value)
    line_end = "\r\n" if "\r\n" in text else "\n"
    if root is not None and root.flow_style:
        return ""
    pair = _pair(root, section)
    if pair is None:
        head = text if not text or text.endswith("\n") else text + line_end
        return f"{head}{section}:{line_end}  {key}: {shown}{line_end}"
    name, table = pair
    indent = " " * (name.start_mark.column + 2)
    if table.id == "mapping" and table.value:
        inner = _pair(table, key)
        if inner is not None:
            start, end = inner[1].start_mark.index, _end(inner[1])
            if end < 0 or ("#" in text[start:end] and inner[1].id != "scalar"):
                return ""
            return text[:start] + (" " if start == end else "") + shown + text[end:]
        if table.flow_style:
            end = table.value[-1][1].end_mark.index
            return f"{text[:end]}, {key}: {shown}{text[end:]}"
        indent = " " * table.start_mark.column
        end = _end(table.value[-1][1])
    elif table.id == "mapping":
        end = table.start_mark.index + 1
        return f"{text[:end]}{key}: {shown}{text[end:]}"
    elif table.id == "scalar" and table.value == "":
        end = table.start_mark.index
    else:
        return ""
    if end < 0:
        return ""
    line = text.find("\n", end)
    head, tail = (text[: line + 1], text[line + 1 :]) if line >= 0 else (text + line_end, "")
    return f"{head}{indent}{key}: {shown}{line_end}{tail}"


def _pair(table: Any, key: str) -> tuple[Any, Any] | None:
    return next(((name, value) for name, value in table.value if name.value == key), None) if table else None


def _end(node: Any) -> int:
    """Where a value ends in the text, -1 where that cannot be told: YAML counts comments after a block as its own."""
    if node.id == "sequence" and not node.flow_style:
        return _end(node.value[-1]) if node.value else -1
    in_block = node.style in ("|", ">") if node.id == "scalar" else not node.flow_style
    return -1 if in_block else int(node.end_mark.index)


# ── a list's items, and taking out again ─────────────────────────────────────────────────────
def with_item(document: Document, section: str, key: str, item: str) -> str:
    """The text with one more item in a list that `section` holds; as `with_value`."""
    node = _at(document, section, key)
    if node is None or node.id != "sequence" or not node.value:
        return with_value(document, section, key, [item]) if node is None or not node.value else ""
    text, shown = document.text, _shown(item)
    if node.flow_style:
        end = node.value[-1].end_mark.index
        return f"{text[:end]}, {shown}{text[end:]}"
    end = _end(node.value[-1])
    start = node.value[0].start_mark
    dash = text.rfind("-", 0, start.index)
    if end < 0 or dash < 0:
        return ""
    indent = text[text.rfind("\n", 0, dash) + 1 : dash]
    line = text.find("\n", end)
    line_end = "\r\n" if "\r\n" in text else "\n"
    head, tail = (text[: line + 1], text[line + 1 :]) if line >= 0 else (text + line_end, "")
    return f"{head}{indent}- {shown}{line_end}{tail}" if not indent.strip() else ""


def without_item(document: Document, section: str, key: str, item: str) -> str:
    """The text without an item of such a list; "" where that cannot be done here."""
    node = _at(document, section, key)
    if node is None or node.id != "sequence":
        return ""
    text = document.text
    at = next((n for n, one in enumerate(node.value) if one.value == item), -1)
    if at < 0:
        return ""
    one = node.value[at]
    if node.flow_style:
        return _without_one(text, node.value, node.value, at)
    if len(node.value) == 1:
        return without_value(document, section, key)
    return _without_lines(text, one.start_mark.index, one.end_mark.index)


def without_value(document: Document, section: str, key: str) -> str:
    """The text without one value of a section, and without the section where nothing else is in it."""
    pair = _pair(document.root, section)
    if pair is None or pair[1].id != "mapping":
        return ""
    name, table = pair
    inner = _pair(table, key)
    if inner is None:
        return ""
    if table.flow_style:
        names = [one for one, _ in table.value]
        return _without_one(document.text, names, [value for _, value in table.value], names.index(inner[0]))
    last = inner[1].value[-1] if inner[1].id == "sequence" and inner[1].value else inner[1]
    end = last.end_mark.index if inner[1].start_mark.index != inner[1].end_mark.index else inner[0].end_mark.index
    start = name.start_mark.index if len(table.value) == 1 else inner[0].start_mark.index
    return _without_lines(document.text, start, end)


def _at(document: Document, section: str, key: str) -> Any:
    pair = _pair(document.root, section)
    inner = _pair(pair[1], key) if pair and pair[1].id == "mapping" else None
    return inner[1] if inner else None


def _without_one(text: str, starts: list[Any], ends: list[Any], at: int) -> str:
    """The text without one member of what stands in brackets, and without its comma."""
    if at:
        return text[: ends[at - 1].end_mark.index] + text[ends[at].end_mark.index :]
    after = starts[1].start_mark.index if len(starts) > 1 else ends[0].end_mark.index
    return text[: starts[0].start_mark.index] + text[after:]


def _without_lines(text: str, start: int, end: int) -> str:
    """The text without the whole lines from `start` to `end`."""
    first = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    return text[:first] + (text[after + 1 :] if after >= 0 else "")
