"""The page that stays open, driven by keys as a person would."""

import asyncio
import threading
import tracemalloc
from dataclasses import replace

from textual.widgets import DataTable, Static

from hpkit.errors import ToolError
from hpkit.live.model import ClusterEvent
from hpkit.live.status import status_of
from hpkit.live.watch import Page, Watch
from tests.live.builders import NOW, observed, queue, task
from tests.live.test_status import platform

NEVER = 10_000.0


def page(used=8, teams=("john", "smith")):
    queues = tuple(queue(name, 4, used=used if name == "smith" else 0, borrowed=max(0, used - 4)) for name in teams)
    return Page("acme-dev", status_of(observed(queues=queues, tasks=(task("smith", "wait", 1),))), ("it differs",))


def run_async(coroutine):
    """Run it as asyncio.run does, which would take away the event loop that other tests of this process have."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(coroutine)


def drive(app, *steps):
    """Run the app without a terminal and return what each step returned."""

    async def run():
        found = []
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            for step in steps:
                if isinstance(step, str):
                    await pilot.press(*step.split())
                    await app.workers.wait_for_complete()
                    await pilot.pause()
                else:
                    found.append(step(app))
        return found

    return run_async(run())


def teams(app):
    table = app.query_one(DataTable)
    return [str(table.get_row_at(number)[0]) for number in range(table.row_count)]


def head(app):
    return str(app.query_one("#head", Static).content)


def test_it_shows_each_team_and_what_differs():
    shown, said = drive(Watch(page, seconds=NEVER), teams, head)
    assert shown == ["john", "smith"]
    assert said.splitlines()[0].startswith("acme-dev  12:00:00 UTC")
    assert "differs: it differs" in said


def test_keys_sort_filter_and_open():
    app = Watch(page, seconds=NEVER)
    by_use, filtered, again, team = drive(
        app,
        "s s s",
        teams,
        "slash j o h n",
        teams,
        "escape",
        teams,
        "enter",
        opened,
    )
    assert by_use == ["smith", "john"]
    assert filtered == ["john"]
    assert sorted(again) == ["john", "smith"]
    assert "team smith: 0 running, 1 waiting" in team
    assert "wait (Job, priority 0, 5 min)" in team


def opened(app):
    return str(app.screen.query_one("#team", Static).content)


def keys(app):
    return {each.binding.key for each in app.screen.active_bindings.values() if each.binding.show}


def test_an_opened_team_is_looked_at_again_and_has_its_own_keys():
    pages = iter([page(), page(used=4), page(teams=("john",))])
    app = Watch(lambda: next(pages), seconds=NEVER)
    table, before, there, after, gone = drive(
        app, keys, "s s s enter", opened, keys, "r", opened, "r", opened, "slash s", "escape"
    )
    assert {"s", "slash", "r"} <= table
    assert before.startswith("acme-dev  12:00:00 UTC\nteam smith: 0 running, 1 waiting")
    assert "r" in there
    assert not {"s", "slash"} & there, "they are the table's"
    assert ("uses 8 of 4" in before, "uses 4 of 4" in after) == (True, True)
    assert gone.endswith("team smith has no queue any more")


def test_the_head_says_what_sorts_and_how_the_platform_is():
    seen = page()
    event = ClusterEvent(NOW, "Info", "gpu", "scaled")
    there = replace(seen.status.observed, platform=platform(events=(event,)))
    app = Watch(lambda: replace(seen, status=status_of(there)), seconds=NEVER)
    before, after = drive(app, head, "s s s", head)
    assert "(by team; Enter opens a team)" in before
    assert "(by used; Enter opens a team)" in after
    assert "running: gpu 0/4" in before
    assert "add-ons: 0 of 0 active; cluster policy: acme-dev is Created" in before
    assert "last event: 12:00, gpu: scaled" in before


def test_a_look_that_takes_long_is_the_only_one_and_nobody_waits_for_it_to_leave():
    begun, enough = [], threading.Event()

    def look():
        begun.append(1)
        enough.wait(60)
        return page()

    app = Watch(look, seconds=0.01)

    async def run():
        async with app.run_test(size=(80, 24)) as pilot:
            for _ in range(5):
                await pilot.press("r")
                await pilot.pause(0.02)

    run_async(run())
    assert (begun, app.is_looking) == ([1], True)
    enough.set()


def test_a_team_that_goes_or_changes_is_seen_at_the_next_look():
    pages = iter([page(), page(used=4), page(teams=("smith",))])
    used = lambda app: str(app.query_one(DataTable).get_cell("smith\nml.g5.12xlarge", "used"))  # noqa: E731 - a step
    assert drive(Watch(lambda: next(pages), seconds=NEVER), used, "r", used, "r", teams) == ["8", "4", ["smith"]]


def test_a_look_that_fails_is_said_and_the_page_stays():
    answers = iter([page()])

    def look():
        found = next(answers, None)
        if found is None:
            raise ToolError("eks:DescribeCluster: ExpiredToken")
        return found

    said, shown = drive(Watch(look, seconds=NEVER), "r", head, teams)
    assert said == "not read: eks:DescribeCluster: ExpiredToken"
    assert shown == ["john", "smith"]


def test_an_hour_of_looking_keeps_nothing():
    """As many looks as an hour has at 5 seconds each, ten times over in number of teams that come and go."""
    looks = 720
    pages = [page(used=number % 8, teams=[f"t{number % 10}", "smith"]) for number in range(10)]
    counter = iter(range(10**6))
    app = Watch(lambda: pages[next(counter) % 10], seconds=NEVER)

    async def run():
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()

            async def look(times):
                for _ in range(times):
                    app._show(pages[next(counter) % 10])
                await pilot.pause()

            await look(looks // 4)
            tracemalloc.start()
            await look(looks // 4)
            before = tracemalloc.get_traced_memory()[0]
            await look(looks // 2)
            after = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            return before, after

    before, after = run_async(run())
    assert after - before < 200_000, (before, after)
