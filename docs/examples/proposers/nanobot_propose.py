"""nanobot as a proposer: the prompt on stdin, the model's answer on stdout, in a session that nothing keeps.

    gitledger config set proposer.command "$HOME/nanobot/bin/python $HOME/bin/nanobot_propose.py"

Run it by the Python that has nanobot. A word behind the script names a model preset of nanobot's configuration.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
import uuid

from nanobot import Nanobot


async def answer(prompt: str, preset: str | None) -> str:
    """What the model says, in a workspace of its own: without the agent's memory, skills and files."""
    with tempfile.TemporaryDirectory() as folder:
        bot = Nanobot.from_config(os.environ.get("NANOBOT_CONFIG"), workspace=folder)
        key = f"gitledger:{uuid.uuid4()}"
        result = await bot.run(prompt, session_key=key, ephemeral=True, model_preset=preset)
        return result.content


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # what it says of itself is no answer
        said = asyncio.run(answer(sys.stdin.read(), sys.argv[1] if len(sys.argv) > 1 else None))
    print(said)
