"""A repository to edit, and the stack handson-dev for files that run the program."""

import pytest

from tests.program.cloud import Program


@pytest.fixture(scope="module")
def repository(instance, clouds):
    del instance
    return clouds.repository


@pytest.fixture(scope="module")
def handson(instance, repository):
    return Program(instance, "handson-dev", root=repository.folder)


@pytest.fixture(scope="module")
def up(request, handson):
    """Return the live stack handson-dev, as its file in the repository describes it."""
    assert request.node.get_closest_marker("platform"), "a file that uses `up` is marked `platform`"
    return handson


def _named(data):
    """Return everything whose removal from a file requires `allowDelete`, with its key."""
    dev = data["environments"]["dev"]
    groups = {("instanceGroups", group["name"]) for group in dev["cluster"]["instanceGroups"]}
    repositories = {
        ("repositories", f"{team['name']}/{name}") for team in data["teams"] for name in team.get("registry", ())
    }
    return groups | repositories | {("teams", name) for name in dev["governance"]["allocations"]}


def allow_delete(names):
    """Return `allowDelete` for pairs (key, name) that may be removed."""
    return {key: sorted(name for kind, name in names if kind == key) for key in sorted({kind for kind, _ in names})}


class Edit:
    """A change of the file of handson, and its reversal."""

    def __init__(self, program, repository, live):
        self._program, self._repository, self._live = program, repository, live
        self._before, self.pending = live.settled(), False
        self._added = set()

    def __call__(self, change):
        """Write the file after `change` edits the organization and its environment.

        It allows the removal of what a previous edit added and this one doesn't.
        """
        data = self._repository.read("handson")
        there = _named(data)
        change(data, data["environments"]["dev"])
        if gone := self._added - _named(data):
            allowed = data["environments"]["dev"].setdefault("allowDelete", {})
            for key, names in allow_delete(gone).items():
                allowed[key] = sorted({*allowed.get(key, ()), *names})
        self._repository.write("handson", data)
        self._added |= _named(data) - there
        self.pending = True

    def undo(self):
        """Restore the file."""
        self._repository.write("handson", self._repository.read("handson"))
        self.pending = False

    def back(self, expected=None):
        """Restore the file and run `up`; the live state must be as before. Check the run's operations if requested.

        The run removes what the change added, which must be allowed.
        """
        data = self._repository.read("handson")
        data["environments"]["dev"]["allowDelete"] = allow_delete(self._added)
        self._repository.write("handson", data)
        done = self._program.up_steps()
        assert expected is None or done == expected
        self.undo()
        assert self._live.settled() == self._before


@pytest.fixture
def edit(up, repository, live):
    edit = Edit(up, repository, live)
    yield edit
    if edit.pending:
        edit.back()
