"""Google's generateContent, streamed and plain: Gemini CLI's model."""

from __future__ import annotations

import json
from typing import Any

from tests.clients.models.server import CALL, REPLY, SUMMARY, Handler, texts


class GenerateContent(Handler):
    """`:generateContent`, `:streamGenerateContent`, `:countTokens`."""

    def get(self) -> object:
        return {"models": []}

    def post(self, path: str, body: Any) -> None:
        if path.endswith(":countTokens"):
            self.keep("other", body)
            return self.send_json({"totalTokens": self.server.script.claimed})
        contents = body.get("contents") or []
        last = (contents if isinstance(contents, dict) else contents[-1] if contents else {}).get("parts") or []
        asked = texts(last) + json.dumps(body.get("systemInstruction") or "")
        setup = body.get("generationConfig") or {}
        schema = setup.get("responseJsonSchema") or setup.get("responseSchema")
        kind = "summary" if "state_snapshot" in asked else "other" if schema else "turn"
        if not self.keep(kind, body):
            return self.send_json({"error": {"code": 503, "message": "no more", "status": "UNAVAILABLE"}}, 503)
        used = self.server.usage(body)
        answer = {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [self.part(kind, body, last)]},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {"promptTokenCount": used, "candidatesTokenCount": 12, "totalTokenCount": used + 12},
            "modelVersion": "fake",
        }
        if not path.endswith(":streamGenerateContent"):
            return self.send_json(answer)
        self.stream()
        return self.say(answer)

    def part(self, kind: str, body: Any, last: list[Any]) -> dict[str, Any]:
        """The one part of the answer."""
        if kind == "summary":
            return {"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}
        if kind == "other":  # which model, who speaks next: both questions have this answer
            return {"text": json.dumps({"reasoning": "none", "model_choice": "flash", "next_speaker": "user"})}
        tools = [d.get("name") for tool in body.get("tools") or [] for d in tool.get("functionDeclarations") or []]
        answered = any("functionResponse" in part for part in last)
        if CALL in texts(last) and not answered and "run_shell_command" in tools:
            asked = {"command": self.server.script.tool, "description": "say it"}
            return {"functionCall": {"name": "run_shell_command", "args": asked}}
        return {"text": REPLY}
