"""A record's fields as a form for `$EDITOR`: YAML out, YAML back in, validated like everything from outside."""

from __future__ import annotations

from gitledger.errors import BadData


def write(fields: dict[str, str]) -> str:
    """The form of some fields."""
    import yaml

    head = "# Change what you like, save and close. A field left as it is stays; an empty file changes nothing.\n"
    return head + yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)


def changed(before: dict[str, str], text: str | None) -> dict[str, str]:
    """The fields that differ in an edited form; raise BadData with the line where it is no form any more."""
    import yaml

    if text is None or not text.strip():
        return {}
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise BadData(f"the form is not valid YAML{where}; nothing was changed, edit it again") from e
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadData("the form must hold `field: text` lines; nothing was changed, edit it again")
    unknown = [str(name) for name in value if name not in before]
    if unknown:
        raise BadData(f"the form has the unknown field {unknown[0]!r}; it may hold: {', '.join(before)}")
    out = {}
    for name, new in value.items():
        new_text = "" if new is None else str(new).rstrip("\n")
        if new_text != before[name].rstrip("\n"):
            out[name] = new_text
    return out
