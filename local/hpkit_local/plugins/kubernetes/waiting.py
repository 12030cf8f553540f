"""Waits until an object is ready, and shows what is missing; if it fails, that is the reason."""

from contextlib import suppress
from dataclasses import dataclass

from hpkit_local.kubernetes.api import ApiResource
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.plugins.kubernetes.objects import LiveObject
from hpkit_local.plugins.kubernetes.ready import Related, tests_of, why_not
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import CancelledError, ChangeFailedError, InitFailedError, PluginError
from hpkit_provider.engine.values import Props

__all__ = ["Readiness", "why"]

_FIRST, _MOST = 0.1, 0.3
_LAST_QUESTION_SECONDS = 5.0


@dataclass(frozen=True)
class Readiness:
    """Checks what objects of an API server lack, and waits for it."""

    api: RetryingApi

    @property
    def _related(self) -> Related:
        return Related(self.api)

    def lacking(self, call: EngineCall, inputs: Props, live: Props) -> str:
        """Return what prevents an object from being ready now, or ""."""
        try:
            lacks = why_not(tests_of(inputs), live)
        except ChangeFailedError as error:
            lacks = str(error)
        return "; ".join([lacks, *self._details(call, live)]) if lacks else ""

    def wait(self, call: EngineCall, live: LiveObject, kind: ApiResource, inputs: Props) -> LiveObject:
        """Return the object once it is ready; what does not become ready stays in state."""
        seen, lacks = live.object, ""
        try:
            tests = tests_of(inputs)
            for delay in call.delays(_FIRST, _MOST):
                lacks = why_not(tests, seen)
                if not lacks:
                    if seen is not live.object:
                        call.progress("")  # what was missing is so no more
                    return LiveObject(live.ref, seen, live.manager)
                call.progress("; ".join([lacks, *self._related.pods_lack(call, seen)]))
                call.pause(delay)
                current = self.api.find(call, kind.path(live.ref.namespace, live.ref.name))
                if current is None:
                    raise PluginError(f"{live.ref} was deleted while Pulumi waited for it")  # noqa: TRY301
                seen = current
        except PluginError as error:
            state = LiveObject(live.ref, seen, live.manager).state
            text = self._unfinished(call, error, lacks, seen)
            reason = f"{live.ref} is not ready: {text}" if text else str(error)
            raise InitFailedError(reason, resource_id=live.ref.id, state=state, inputs=inputs) from None
        raise AssertionError  # pragma: no cover - delays never end

    def _unfinished(self, call: EngineCall, error: PluginError, lacks: str, seen: Props) -> str:
        """Return what was missing when the wait ended, and why it ended; "" if the error states it all."""
        failed = isinstance(error, ChangeFailedError)
        messages = [str(error) if failed else lacks] if failed or lacks else []
        if messages and not isinstance(error, CancelledError):
            # The time of the wait may be over, so these requests get a separate time limit.
            with suppress(PluginError):
                messages += self._details(EngineCall(call.urn, _LAST_QUESTION_SECONDS, call.cancel), seen)
        return "; ".join(messages) + ("" if failed or not messages else f": {why(call, error)}")

    def _details(self, call: EngineCall, live: Props) -> list[str]:
        """Return the status of a Deployment's pods, and the reported warnings."""
        pods = self._related.pods_lack(call, live)
        pods_text = "; ".join(pods)
        return [
            *pods,
            *(f"{reason}: {text}" for reason, text in self._related.warnings(call, live) if text not in pods_text),
        ]


def why(call: EngineCall, error: PluginError) -> str:
    """Return in a few words why a wait ended."""
    if isinstance(error, CancelledError):
        return "cancelled"
    return str(error) if call.left > 0 else f"time-out after {call.seconds:.0f} s"
