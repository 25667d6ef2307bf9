"""Anthropic's Messages API, streamed and plain: Claude Code's model."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.clients.models.server import CALL, SUMMARY, Handler, texts, whole


class Messages(Handler):
    """`/v1/messages`, with `count_tokens` and the list of models."""

    def get(self) -> object:
        return {"data": [], "has_more": False}

    def post(self, path: str, body: Any) -> None:
        if path.endswith("count_tokens"):
            self.keep("other", body)
            return self.send_json({"input_tokens": self.server.script.claimed})
        if not path.endswith("/v1/messages"):
            self.keep("other", body)
            return self.send_json({})
        last = _last_of_user(body)
        kind = "summary" if _asks_for_summary(texts(last)) else "turn"
        if not self.keep(kind, body):
            return self.send_json({"type": "error", "error": {"type": "overloaded_error", "message": "no more"}}, 503)
        block = self.block(kind, body, last)
        usage = {"input_tokens": self.server.usage(body), "output_tokens": 12}
        usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": "msg_" + uuid.uuid4().hex[:20],
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        if not body.get("stream"):
            return self.send_json({**message, "content": [block], "stop_reason": stop})
        empty: dict[str, Any] = {"type": "text", "text": ""}
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        self.stream()
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": empty}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            (
                "message_delta",
                {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 12}},
            ),
            ("message_stop", {}),
        ]
        for name, rest in events:
            self.say({"type": name, **rest}, name)
        return None

    def block(self, kind: str, body: Any, last: object) -> dict[str, Any]:
        """The one block of the answer."""
        if kind == "summary":
            return {"type": "text", "text": f"<analysis>none</analysis>\n<summary>{SUMMARY}</summary>"}
        answered = isinstance(last, list) and any(part.get("type") == "tool_result" for part in last)
        if CALL in texts(last) and not answered and "Bash" in [tool.get("name") for tool in body.get("tools") or []]:
            asked = {"command": self.server.script.tool, "description": "say it"}
            return {"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex[:20], "name": "Bash", "input": asked}
        return {"type": "text", "text": self.server.script.reply(whole(body))}


def _last_of_user(body: Any) -> object:
    # Not always the last message: newer clients put messages of the role `system` after it.
    return next((m.get("content") for m in reversed(body.get("messages") or []) if m.get("role") == "user"), "")


def _asks_for_summary(text: str) -> bool:
    return "detailed summary of" in text or "<summary>" in text
