"""The transcript on evidence in `docs/guide.md`: `python -m tests.evidence_transcript` prints it, by the program."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from tests.process.program import gitledger
from tests.sealed import new_repo, seal_process

CODE = 'def discount(total, code):\n    return total * 9 // 10 if code == "TEN" else total\n'
TESTS = """import unittest

from shop.cart import discount


class Codes(unittest.TestCase):
    def test_ten(self):
        self.assertEqual(discount(1000, "TEN"), 900)

    def test_unknown(self):
        self.assertEqual(discount(1000, "NO"), 1000)
"""
FILES = {
    "shop/__init__.py": "", "shop/cart.py": CODE, "tests/__init__.py": "", "tests/test_cart.py": TESTS,
    ".gitignore": "__pycache__/\n",
}  # fmt: skip
CRITERIA = ("10 % off with code TEN", "an unknown code is refused")
EDIT = "$EDITOR shop/cart.py          # 20 % off, by mistake"
STEPS = (
    'gitledger task evidence --criterion c1 --run "python -m unittest tests.test_cart" --covers shop --covers tests',
    "gitledger task evidence --criterion c2 --path shop/cart.py --path tests/test_cart.py",
    "gitledger check",
    EDIT,
    "gitledger check",
    "gitledger check --rerun",
    "gitledger task done",
)


def play(folder: Path) -> str:
    """What a person types and sees, in a repository of its own below `folder`."""
    repo = new_repo(folder / "shop")
    repo.commit("Discount codes", FILES)
    python = folder / "bin" / "python"  # whatever this machine calls it
    python.parent.mkdir()
    # A file that changes within the second, and not in size, looks to Python as what it has compiled.
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B "$@"\n')
    python.chmod(0o755)
    env = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    for words in (
        ("init",),
        (
            "task",
            "add",
            "Discount codes",
            "--accept",
            "10 % off with code TEN",
            "--accept",
            "an unknown code is refused",
        ),
        ("task", "start", "T-0001"),
    ):
        assert gitledger(repo.path, *words).status == 0
    told = []
    for step in STEPS:
        told.append(f"$ {step}")
        if step == EDIT:
            repo.write({"shop/cart.py": CODE.replace("9 //", "8 //")})
            continue
        ran = gitledger(repo.path, *shlex.split(step)[1:], env=env)
        told += (ran.out + ran.err).splitlines()
        if ran.status:
            told.append(f"(exit code {ran.status})")
    return "\n".join(told)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        seal_process(Path(place))
        print(play(Path(place)))
