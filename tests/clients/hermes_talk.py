"""Hermes used as its person uses it, step by step, in its own Python: `python hermes_talk.py '[["say", "hello"]]'`.

Without words the steps are read from its standard input, one a line. Each prints one line, `STEP ` and JSON: the step,
what came of it, the session's id. Not a module of the suite.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any


def main(steps: Iterable[list[str]]) -> None:
    """Take the steps one by one; the process ends without any clean-up of its own behind the last."""
    import cli

    talk = cli.HermesCLI(toolsets=["memory", "todo", "terminal", "file"], compact=True)
    talk.tool_progress_mode = "off"
    for step, *given in steps:
        print("STEP " + json.dumps([step, take(talk, step, *given), talk.session_id]), flush=True)
    os._exit(0)


def take(talk: Any, step: str, given: str = "") -> Any:
    """Take one step."""
    if step == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    agent = started(talk)
    memory = agent._memory_manager
    if step == "say":
        history = talk.conversation_history
        done = agent.run_conversation(user_message=given, conversation_history=history, task_id=talk.session_id)
        talk.conversation_history = done.get("messages", history)
        talk.session_id = agent.session_id
        return done.get("final_response")
    if step == "flush":  # what Hermes does behind a turn is done
        return memory.flush_pending(30)
    if step == "settle":  # and what we do there
        return memory.get_provider("gitledger")._line.wait(60)
    if step == "command":
        return talk.process_command(given)
    if step == "compact":
        before = len(talk.conversation_history)
        talk.conversation_history, _ = agent._compress_context(
            talk.conversation_history, "", approx_tokens=90_000, force=True
        )
        talk.session_id = agent.session_id
        return [before, len(talk.conversation_history)]
    if step == "auto":  # as Hermes compacts when it finds the context full
        before = len(talk.conversation_history)
        talk.conversation_history, _ = agent._compress_context(talk.conversation_history, "", approx_tokens=90_000)
        return [before, len(talk.conversation_history)]
    if step == "state":  # all that a compaction would change
        row = agent._session_db.get_session(agent.session_id)
        return [talk.conversation_history, agent._session_db.get_messages(agent.session_id), row["ended_at"]]
    if step == "gateway":  # as its gateway compacts: by an agent of the same session without a memory
        other = type(agent)(
            base_url=agent.base_url,
            api_key="dummy",
            provider="custom",
            model=agent.model,
            quiet_mode=True,
            skip_memory=True,
            skip_context_files=True,
            session_id=agent.session_id,
            session_db=agent._session_db,
            platform="telegram",
            enabled_toolsets=["memory"],
        )
        before = len(talk.conversation_history)
        kept, _ = other._compress_context(talk.conversation_history, "", approx_tokens=90_000, force=True)
        talk.conversation_history = kept
        return [before, len(kept)]
    if step == "leave":  # as at an exit, without the seconds that Hermes waits for its own threads
        agent.shutdown_memory_provider(talk.conversation_history)
        return None
    raise ValueError(step)


def started(talk: Any) -> Any:
    """Its agent, as the first message makes it."""
    if talk.agent is None:
        if not (talk._ensure_runtime_credentials() and talk._init_agent()):
            raise RuntimeError("Hermes has no agent")
        talk.agent.quiet_mode = True
        if os.environ.get("QUIET", "1") == "1":
            talk.agent.suppress_status_output = True
    return talk.agent


if __name__ == "__main__":
    main(json.loads(sys.argv[1]) if sys.argv[1:] else map(json.loads, sys.stdin))
