"""OpenAI's two APIs: Responses (Codex) and Chat Completions (OpenCode, pi, Qwen Code, Copilot CLI, Droid)."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from tests.clients.models.server import CALL, SUMMARY, Handler, texts, whole

SUMMARY_WORDS = (
    "context checkpoint compaction",
    "summary of our conversation",
    "handoff summary",
    "detailed prompt for continuing",
    "<state_snapshot>",
    "compress",
    "structured summary",
    "detailed summary",
    "anchored summary",
    "summarize the conversation",
    "summarization assistant",
    "checkpoint summary",
    "continuation prompt",
    "replacement checkpoint",
)
"""By one of these a request for a summary is told from a turn, whichever client sends it."""
SHELLS = (
    "Bash",
    "bash",
    "shell_command",
    "exec_command",
    "run_shell_command",
    "shell",
    "local_shell",
    "Execute",
    "execute",
)
"""The names that clients give the tool that runs a command."""
FILLING = {"boolean": False, "integer": 60, "number": 60}
"""What a required argument that says nothing to us gets, by its type."""


class OpenAI(Handler):
    """`/responses` and `/chat/completions`."""

    def get(self) -> object:
        model = {"id": "fake-model", "object": "model", "created": 1, "owned_by": "fake"}
        return {"object": "list", "data": [model]}

    def post(self, path: str, body: Any) -> None:
        if path.endswith("/responses"):
            return self.respond(body)
        if path.endswith("/chat/completions"):
            return self.chat(body)
        self.keep("other", body)
        return self.send_json({})

    def respond(self, body: Any) -> None:
        """Answer as Responses does."""
        items = body.get("input") or []
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        said = [item for item in items if item.get("role") == "user"]
        last = texts(said[-1].get("content")) if said else ""
        tail = str(items[-1].get("type") or "") if items else ""
        kind = "summary" if _asks_for_summary(last) or tail == "compaction_trigger" else "turn"
        if not self.keep(kind, body):
            return self.send_json({"error": {"message": "no more", "type": "server_error"}}, 503)
        call = _shell(
            {tool.get("name"): tool.get("parameters") for tool in body.get("tools") or []}, self.server.script.tool
        )
        item: dict[str, Any]
        if kind == "turn" and CALL in last and "_output" not in tail and call:
            item = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": call[0]}
            item["arguments"] = json.dumps(call[1])
        else:
            text = SUMMARY if kind == "summary" else self.server.script.reply(whole(body))
            item = {"type": "message", "role": "assistant", "id": _id("msg")}
            item["content"] = [{"type": "output_text", "text": text}]
        used = self.server.usage(body)
        usage = {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used + 12,
        }
        done = {"id": _id("resp"), "status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            return self.send_json({**done, "object": "response"})
        self.stream()
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": done["id"]}},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": item | ({"content": []} if "content" in item else {}),
            },
        ]
        if "content" in item:
            delta = {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": item["content"][0]["text"]}
            events.append({"type": "response.output_text.delta", **delta})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed", "response": done})
        for event in events:
            self.say(event, event["type"])
        return None

    def chat(self, body: Any) -> None:
        """Answer as Chat Completions does."""
        messages = body.get("messages") or []
        said = [m for m in messages if m.get("role") == "user"]
        last = texts(said[-1].get("content")) if said else ""
        system = "\n".join(texts(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))
        scripted = self.server.script.call(body)
        kind = "turn" if scripted else _kind_of_chat(last, system, bare=not body.get("tools"))
        if not self.keep(kind, body):
            return self.send_json({"error": {"message": "no more", "type": "server_error"}}, 503)
        offered = {t["function"]["name"]: t["function"].get("parameters") for t in body.get("tools") or []}
        called = CALL in last and messages[-1].get("role") != "tool"
        call = scripted or (_shell(offered, self.server.script.tool) if called else None)
        message: dict[str, Any]
        if kind == "turn" and call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            tool = {"index": 0, "id": _id("call"), "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [tool]}
        else:
            text = {"summary": SUMMARY, "title": "A title"}.get(kind) or self.server.script.reply(whole(body))
            if kind == "summary" and "<state_snapshot>" in last + system:
                text = f"<state_snapshot>{text}</state_snapshot>"
            message = {"role": "assistant", "content": text}
        used = self.server.usage(body)
        usage = {"prompt_tokens": used, "completion_tokens": 12, "total_tokens": used + 12}
        base = {"id": _id("chatcmpl"), "created": int(time.time()), "model": body.get("model")}
        stop = "tool_calls" if "tool_calls" in message else "stop"
        if not body.get("stream"):
            choices = [{"index": 0, "message": message, "finish_reason": stop}]
            return self.send_json({**base, "object": "chat.completion", "choices": choices, "usage": usage})
        self.stream()
        base["object"] = "chat.completion.chunk"
        self.say({**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]})
        self.say({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
        self.say({**base, "choices": [], "usage": usage})
        return self.say("[DONE]")


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _asks_for_summary(text: str) -> bool:
    return any(words in text.lower() for words in SUMMARY_WORDS)


def _kind_of_chat(last: str, system: str, *, bare: bool) -> str:
    # `bare`: no tools are offered, as in every request that is not a turn.
    if bare and ("title" in system.lower()[:400] or "title" in last.lower()[:200]):
        return "title"
    if "FAKE-SUMMARY" in last and not bare:
        last = last.replace("<state_snapshot>", "")  # a summary that was put back, not a request for one
    return "summary" if _asks_for_summary(last) or (bare and _asks_for_summary(system)) else "turn"


def _shell(offered: dict[Any, Any], command: str) -> tuple[str, dict[str, Any]] | None:
    # The offered tool that runs a command, and arguments that its schema takes.
    for name in SHELLS:
        if name not in offered:
            continue
        schema = offered[name] or {}
        known = schema.get("properties") or {}
        given: dict[str, Any] = {}
        for word, rule in known.items():
            if word in ("command", "cmd"):
                given[word] = ["bash", "-lc", command] if rule.get("type") == "array" else command
            elif word == "description":
                given[word] = "say it"
            elif word == "is_background":
                given[word] = False
            elif word == "riskLevel":
                given |= {"riskLevel": "low", "riskLevelReason": "none"}
        for word in schema.get("required") or []:
            given.setdefault(word, FILLING.get(known.get(word, {}).get("type"), "x"))
        return name, given
    return None
