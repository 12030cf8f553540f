"""The predicted effect of a change equals the engine's preview: every edit of every example."""

import json

import pytest

from generate.examples import example_files
from tests.changes.key_changes import outcomes
from tests.program.cloud import Program

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(7200)]

_GRAVE = {"replace": "replace", "create-replacement": "replace", "delete-replaced": "replace", "delete": "delete"}
# Guards and components contain nothing; how a guard is registered doesn't matter.
_NOTHING = ("hpkit:index:", "pulumi:", "hyperpod:index:ChangeGuard")


def code(decision):
    return decision.reason.partition(" of instance group ")[0] if decision.code == "immutable" else decision.code


def short(urn):
    kind, _, name = urn.rpartition("::")
    return kind.rpartition("$")[2].rpartition("::")[2], name


def previewed(program):
    """Return whether the engine continues, and what it replaces or deletes."""
    done = program.run("preview", "--json", check=False)
    said = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    steps = [(short(step["urn"]), _GRAVE.get(step["op"])) for step in said.get("steps", [])]
    lost = {(op, *name) for name, op in steps if op and not name[0].startswith(_NOTHING)}
    return done.returncode == 0, lost, done.stdout[-3000:] + done.stderr[-3000:]


def foretold(change):
    steps = [step for step in (*change.of("replace"), *change.of("delete")) if step.custom]
    return {(step.action, step.type, step.name) for step in steps if not step.type.startswith(_NOTHING)}


@pytest.mark.parametrize("file", example_files(), ids=lambda file: file.stem)
def test_the_engine_previews_what_is_foretold(file, instance, repository):
    edits = [outcome for outcome in outcomes(file) if outcome.kind not in ("invalid", "nothing")]
    wrong = []
    for stack in sorted({outcome.stack for outcome in edits}):
        program = Program(instance, stack, root=repository.folder)
        repository.write(file.stem, repository.read(file.stem))
        program.up()
        for outcome in (edit for edit in edits if edit.stack == stack):
            repository.write(file.stem, outcome.data)
            goes_on, lost, output = previewed(program)
            expected = foretold(outcome.change)
            if goes_on is outcome.change.rejected or (goes_on and lost != expected):
                decisions = sorted(code(decision) for decision in outcome.change.decisions)
                differs = sorted(lost ^ expected) if goes_on else output
                wrong.append(
                    f"{outcome.edit.how} {outcome.edit.path} → {outcome.value}: {decisions}, {goes_on=}, {differs}"
                )
        data = repository.read(file.stem)
        data["environments"][stack.rpartition("-")[2]]["protect"] = False
        repository.write(file.stem, data)
        program.up()
        program.destroy()
    assert not wrong, "\n".join(wrong)
