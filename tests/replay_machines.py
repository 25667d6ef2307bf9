"""The machines of a replay, and what somebody does there in git: each step is done, and told to the model."""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests import sealed
from tests.replay_agents import Clone, installed
from tests.replay_model import Place, Project
from tests.sealed import Repo, identify, new_repo

ROOT = Path(__file__).parent.parent
NOUNS = ("basket", "cart", "coin", "crate", "door", "drawer", "hinge", "jar", "kettle", "lamp", "mast", "plank", "sail")
VERBS = ("bind", "carve", "draw", "fetch", "fold", "grind", "lift", "mend", "paint", "polish", "sew", "stack", "weigh")


@dataclass
class Machines:
    """One clone or two, the model of what was said and done there, and what was counted."""

    folder: Path
    chance: random.Random
    project: Project = field(default_factory=Project)
    clones: dict[str, Clone] = field(default_factory=dict)
    did: dict[str, int] = field(default_factory=dict)
    pushed: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    def begin(self, clients: tuple[str, ...], second: bool) -> None:
        """A project with a ledger and installed hooks in one clone, or in two with a remote between them."""
        shop = new_repo(self.folder / "ada" / "shop")
        ada = self.clones["ada"] = self._machine("ada", shop)
        ada.ledger("init", "--project", "Shop")
        ada.ledger("hooks", "install", *[word for client in clients for word in ("--client", client)])
        ada.ledger("hooks", "install", "--git")
        shop.write({"README.md": "# Shop\n"})
        self._commit_all(ada, "begin", first=True)
        if second:
            ada.repo.git("clone", "--quiet", "--bare", str(shop.path), str(self.folder / "shop.git"), env=ada.env)
            ada.repo.git("remote", "add", "origin", str(self.folder / "shop.git"), env=ada.env)
            ada.ledger("remote", "set", "origin")
            ada.ledger("sync")
            self._join(ada)
            self.project.shared = True
        for clone in self.clones.values():
            clone.commands.update({client: installed(clone.repo, client) for client in clients})

    def _machine(self, name: str, repo: Repo) -> Clone:
        home = self.folder / name / "home"
        home.mkdir(parents=True)
        env = sealed.sealed_environment(home, os.environ)
        program = self.folder / name / "bin" / "gitledger"
        program.parent.mkdir()
        load = f"import sys; sys.argv[0] = {str(program)!r}; sys.path.insert(0, {str(ROOT)!r})"
        load += "; from gitledger.__main__ import main; sys.exit(main())"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(load)} "$@"\n')
        program.chmod(0o755)
        env["PATH"] = f"{program.parent}{os.pathsep}{env['PATH']}"
        return Clone(name, repo, env, {})

    def _join(self, ada: Clone) -> None:
        path = self.folder / "ben" / "shop"
        path.parent.mkdir()
        ada.repo.git("clone", "--quiet", str(self.folder / "shop.git"), str(path), env=ada.env)
        ben = self.clones["ben"] = self._machine("ben", identify(Repo(path), "Ben Tester", "ben@example.org"))
        ben.ledger("init", "--remote", "origin")
        ben.ledger("hooks", "install", "--git")
        ben.ledger("sync")
        ada.ledger("sync")
        for one in self.clones.values():
            listed = json.loads(one.ledger("trust", "list", "--json"))
            for row in listed["writers"]:
                if not row["trusted"]:
                    one.ledger("trust", "add", row["writer"], "--yes")
        self.project.places["ben"] = Place("ben", "main", {"main": self.project.places["ada"].head})
        self.pushed = self.project.places["ben"].head

    # ── words ────────────────────────────────────────────────────────────────────────────────
    def words(self) -> str:
        """A text that nothing else in the play holds, or is part of."""
        self._numbers["words"] = number = self._numbers.get("words", 99) + 1
        return f"{self.chance.choice(VERBS)} the {self.chance.choice(NOUNS)} w{number}"

    def number(self, letter: str) -> str:
        """The next id of a kind of records."""
        self._numbers[letter] = number = self._numbers.get(letter, 0) + 1
        return f"{letter}-{number:04}"

    def count(self, what: str) -> None:
        """Note that something was done."""
        self.did[what] = self.did.get(what, 0) + 1

    # ── git ──────────────────────────────────────────────────────────────────────────────────
    def _commit_all(self, clone: Clone, subject: str, *, first: bool = False) -> None:
        git = clone.repo.git
        git("add", "--all", env=clone.env)
        git("commit", "--quiet", "--allow-empty", "--message", subject, env=clone.env)
        head = git("rev-parse", "HEAD", env=clone.env)
        if first:
            self.project.code.parents[head] = ()
            self.project.places[clone.name] = Place(clone.name, "main", {"main": head})
            return
        place = self.project.places[clone.name]
        self.project.code.parents[head] = (place.head,)
        place.heads[place.branch] = head
        place.changed.clear()

    def commit(self, clone: Clone) -> None:
        """Somebody commits a file of its own."""
        name = f"src/f{self._numbers.get('file', 0)}.txt"
        self._numbers["file"] = self._numbers.get("file", 0) + 1
        clone.repo.write({name: name})
        self._commit_all(clone, f"Add {name}")
        self.count("commits")

    def leave(self, clone: Clone) -> None:
        """A file is left that is in no commit."""
        name = f"left{self._numbers.get('left', 0)}.txt"
        self._numbers["left"] = self._numbers.get("left", 0) + 1
        clone.repo.write({name: name})
        self.project.places[clone.name].changed.add(name)

    def amend(self, clone: Clone) -> bool:
        """The newest commit is made again under another message."""
        place = self.project.places[clone.name]
        if place.changed or place.head == self.pushed or len(self.project.code.parents[place.head]) != 1:
            return False
        clone.repo.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "Said better", env=clone.env)
        self._became(clone, [place.head], self.project.code.parents[place.head][0])
        return True

    def rebase(self, clone: Clone, onto: str) -> None:
        """The branch that is checked out is put on top of another one."""
        place, code = self.project.places[clone.name], self.project.code
        base = code.history(place.heads[onto])
        old = [one for one in code.history(place.head) if one not in base]
        old.sort(key=lambda one: len(code.history(one)))
        clone.repo.git("rebase", "--quiet", onto, env=clone.env)
        self._became(clone, old, place.heads[onto])

    def _became(self, clone: Clone, old: list[str], parent: str) -> None:
        place = self.project.places[clone.name]
        new = clone.repo.git("rev-list", "--reverse", f"{parent}..HEAD", env=clone.env).split()
        assert len(new) == len(old)
        for before, after in zip(old, new, strict=True):
            self.project.code.became[before] = after
            self.project.code.parents[after] = (parent,)
            parent = after
        place.heads[place.branch] = parent

    def switch(self, clone: Clone, branch: str) -> None:
        """Another branch is checked out, which is made where it is not there."""
        place = self.project.places[clone.name]
        words = [branch] if branch in place.heads else ["-c", branch]
        clone.repo.git("switch", "--quiet", *words, env=clone.env)
        place.heads.setdefault(branch, place.head)
        place.branch = branch

    def merge(self, clone: Clone, branch: str, *, commit: bool) -> None:
        """Another branch is merged into the one that is checked out."""
        place, code = self.project.places[clone.name], self.project.code
        how = ["--no-ff", "-m", "Bring it in"] if commit else ["--ff"]
        clone.repo.git("merge", "--quiet", *how, branch, env=clone.env)
        head = clone.repo.git("rev-parse", "HEAD", env=clone.env)
        code.parents.setdefault(head, (place.head, place.heads[branch]))
        if head == place.heads[branch] != place.head:
            place.forwarded.add((place.branch, branch, head))
        place.heads[place.branch] = head

    def reset(self, clone: Clone) -> bool:
        """The newest commit is taken away."""
        place = self.project.places[clone.name]
        parents = self.project.code.parents[place.head]
        if place.changed or place.head == self.pushed or len(parents) != 1:
            return False
        clone.repo.git("reset", "--quiet", "--hard", parents[0], env=clone.env)
        place.heads[place.branch] = parents[0]
        return True

    def go_over(self, other: Clone, clone: Clone) -> None:
        """Work goes on in another clone: code and ledger are pushed here and pulled there."""
        there, here = self.project.places[other.name], self.project.places[clone.name]
        if there.heads["main"] != self.pushed:
            other.repo.git("push", "--quiet", "origin", "main", env=other.env)
            self.pushed = there.heads["main"]
        other.ledger("sync")
        if here.heads["main"] != self.pushed:
            how = ["pull", "--ff-only", "origin", "main"] if here.branch == "main" else ["fetch", "origin", "main:main"]
            clone.repo.git(*how, "--quiet", env=clone.env)
            here.heads["main"] = self.pushed
        clone.ledger("sync")
        here.unsent = there.unsent = False
