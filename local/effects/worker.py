"""The thread that makes the API server be as the endpoint says, again and again.

It looks at all that should be, applies what differs and deletes what is no longer wanted. Nothing is remembered across
restarts but what is in the endpoint and in the API server; what fails because either is away is done at the next turn.
"""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from local.aws.effects import EffectError, NotYet
from local.aws.view import View
from local.effects.controllers import aggregate_roles, collect_workloads, finish_namespaces
from local.effects.desired import desired
from local.effects.foreign import foreign_kueue
from local.effects.karpenter import judge
from local.effects.objects import KINDS, MANAGED, Item, Kind
from local.effects.wipe import wipe
from local.effects.wishes import with_wishes
from local.kubernetes.api import Api, RefusedError
from local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, digest, running

__all__ = ["Worker"]

_log = logging.getLogger(__name__)
_OWNER = "sagemaker.amazonaws.com"
_IDLE_SECONDS = 2.0
_BUSY_SECONDS = 0.1
_ASK_SECONDS = 0.05
_END_SECONDS = 3.0
_FORGET_SECONDS = 10.0
# What the API server says when what is asked for can never be.
_INVALID = (http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY)

Document = Mapping[str, Any]
# Metadata of what there is, by kind and path.
_Present = dict[str, dict[str, dict[str, Any]]]


class Worker:
    """One thread on one API server; `wish` is called under the endpoint's lock, all else happens in the thread."""

    def __init__(self, kubeconfig: Path, view: View) -> None:
        self._kubeconfig = kubeconfig
        self._view = view
        self._api: Api | None = None
        self._wishes: dict[str, Document | None] = {}
        self._asked: dict[str, float] = {}
        self._outcomes: dict[str, tuple[Document | None, str]] = {}
        self._applied: dict[str, tuple[str, object]] = {}
        self._empty = False
        self._roles: dict[str, str] = {}
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="effects", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the turn that runs."""
        self._stopping = True
        self._wake.set()
        # An API server that hangs must not keep the endpoint from ending.
        self._thread.join(timeout=_END_SECONDS)

    def wake(self) -> None:
        """Look again soon."""
        self._wake.set()

    def wish(self, key: str, document: Document | None) -> None:
        """Return when the API server is as wished; until then NotYet, and EffectError if it cannot be."""
        told = self._outcomes.pop(key, None)
        if told is not None and key in self._wishes and told[0] == document:
            del self._wishes[key]
            if told[1]:
                raise EffectError(told[1])
            return
        if key not in self._wishes or self._wishes[key] != document:
            self._wishes[key] = document
            self._wake.set()
        self._asked[key] = time.monotonic()
        raise NotYet(_ASK_SECONDS)

    def _run(self) -> None:
        while not self._stopping:
            pause = _IDLE_SECONDS
            try:
                pause = self._turn()
            except OSError as error:
                # The API server is away or refuses for now, which it says itself.
                _log.debug("to be tried again: %s", error)
            except Exception as error:  # noqa: BLE001 - a defect must not end the thread
                _log.exception("a turn failed")
                self._fail(f"{type(error).__name__}: {error}; the log of part aws says where")
            self._wake.wait(pause)
            self._wake.clear()
        if self._api is not None:
            self._api.close()

    def _turn(self) -> float:
        """Do all there is to do once, and return how long to pause."""
        with self._view.held():
            self._forget()
            wishes = dict(self._wishes)
            before = self._view.picture()
        picture = with_wishes(before, wishes)
        api = self._api = self._api or Api.of_kubeconfig(self._kubeconfig, owner=_OWNER, keep=True)
        left = self._control(api)
        if not picture.eks and self._empty and not wishes:
            # Without an EKS cluster nothing is to follow; the API server can be used for itself.
            return _BUSY_SECONDS if left else _IDLE_SECONDS
        namespaces = {
            each["metadata"]["name"]
            for each in api.items("/api/v1/namespaces", bare=True)
            if "deletionTimestamp" not in each["metadata"]
        }
        plan = desired(picture, namespaces)
        refused = {**plan.refused, **_foreign(api, wishes)}
        there = {name: _present(api, kind) for name, kind in KINDS.items()}
        late = self._apply(api, plan.items, refused, there)
        left = self._prune(api, {item.path for item in plan.items}, there) or left
        if any(key.startswith("eks/") and wish is None for key, wish in wishes.items()):
            left = wipe(api) or left
        judge(api, picture)
        self._empty = not picture.eks and not left
        self._settle(wishes, refused, late, left=left)
        return _BUSY_SECONDS if late or left or self._wishes else _IDLE_SECONDS

    def _forget(self) -> None:
        """Drop wishes that nobody asks about any more: what they were for has gone meanwhile."""
        now = time.monotonic()
        for key in [key for key in self._wishes if now - self._asked[key] > _FORGET_SECONDS]:
            del self._wishes[key]

    def _control(self, api: Api) -> bool:
        """Do what a controller manager would; say whether a namespace is still on its way out."""
        roles = {path: metadata["resourceVersion"] for path, metadata in _present(api, KINDS["ClusterRole"]).items()}
        if roles != self._roles:
            aggregate_roles(api)
            self._roles = roles
        collect_workloads(api)
        return finish_namespaces(api)

    def _fail(self, why: str) -> None:
        """Let every change that waits fail, rather than wait for ever."""
        with self._view.held():
            self._outcomes.update({key: (wish, why) for key, wish in self._wishes.items()})

    def _settle(
        self, wishes: Mapping[str, Document | None], refused: Mapping[str, str], late: Collection[str], *, left: bool
    ) -> None:
        for key, document in wishes.items():
            if key in refused:
                self._outcomes[key] = (document, refused[key])
            elif key not in late and not (document is None and left):
                self._outcomes[key] = (document, "")

    def _apply(self, api: Api, items: Iterable[Item], refused: dict[str, str], there: _Present) -> set[str]:
        """Apply what differs; returns who has to wait, and adds to `refused` whose object cannot be."""
        late: set[str] = set()
        for item in items:
            if item.owners and item.owners <= refused.keys():
                continue
            found = there[item.kind.kind].get(item.path, {})
            if "deletionTimestamp" in found:
                late |= item.owners or {""}
                continue
            try:
                if not found or self._applied.get(item.path) != (item.digest(), found.get("generation")):
                    self._applied[item.path] = (item.digest(), _put(api, item))
            except RefusedError as error:
                if error.status in _INVALID:
                    refused.update(dict.fromkeys(item.owners, str(error)))
                _log.debug("%s: %s", item.path, error)
                # What nobody waits for and cannot be is tried again, but not in haste.
                late |= item.owners or (set() if error.status in _INVALID else {""})
            if item.path == CONFIG_MAP and not _heeded(api):
                late |= item.owners
        return late - refused.keys()

    def _prune(self, api: Api, wanted: Collection[str], there: _Present) -> bool:
        """Delete what was made here and is no longer wanted; say whether something is still there."""
        found = {path: metadata for name in reversed(there) for path, metadata in there[name].items()}
        surplus = [
            path
            for path, metadata in found.items()
            if path not in wanted and metadata.get("labels", {}).items() >= MANAGED.items()
        ]
        for path in surplus:
            self._applied.pop(path, None)
            if "deletionTimestamp" not in found[path]:
                api.delete(path)
        return bool(surplus)


def _present(api: Api, kind: Kind) -> dict[str, dict[str, Any]]:
    """Return the metadata of all objects of a kind, by path."""
    found = [each["metadata"] for each in api.items(kind.folder(), bare=True)]
    return {f"{kind.folder(each.get('namespace', ''))}/{each['name']}": each for each in found}


def _put(api: Api, item: Item) -> object:
    """Apply an object and its status; return its generation then."""
    document = item.document()
    answer = api.apply(item.path, document)
    if item.kind.kind == "Node" and answer["spec"].get("taints", []) != document["spec"]["taints"]:
        # Admission marks every new node as not ready, and leaves it to a controller to take that away.
        answer = api.apply(item.path, document)
    if item.status is not None:
        api.apply(f"{item.path}/status", {**document, "status": item.status})
    if item.kind.kind == "CustomResourceDefinition":
        spec = answer["spec"]
        for version in spec["versions"]:
            # Being established is not enough: objects are refused until this is answered.
            api.read(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1")
    return answer["metadata"].get("generation")


def _heeded(api: Api) -> bool:
    """Say whether Kueue runs with the settings that are in the cluster."""
    found = api.read(CONFIG_MAP)
    return running(api) == digest(found.get("data", {}).get(CONFIG_KEY, ""))


def _foreign(api: Api, wishes: Mapping[str, Document | None]) -> dict[str, str]:
    """Refuse the task governance add-on beside a Kueue that is not the local cloud's."""
    asked = [key for key, wish in wishes.items() if key.startswith("addon/") and wish is not None]
    found = foreign_kueue(api) if asked else ""
    return dict.fromkeys(asked, found) if found else {}
