"""Records calls to the endpoint as lines of JSON: service, operation, region, and names in the request.

It keeps no documents, contents or secrets; only members that name something (IDs, names, ARNs, tags).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from hpkit_local.aws.errors import EndpointError, ServiceError
from hpkit_local.aws.protocol import Call, parameters

__all__ = ["CallRecorder", "identifiers", "read_record"]

_NAMES = re.compile(
    r"(?:Id|ARN|Arn|Name|name|Role|Bucket|Key|keyId|ResourceId|resource|resourceIdentifier|resourceArns?|alias"
    r"|InstanceProfile|Rule|PathPrefix|logGroupNamePrefix|Prefix|Scope)(?:\.\d+|\.member\.\d+)*$|Tag(?:s\.member)?\.\d+\."
    r"|TagSpecification"
)
_LONGEST: Final = 512


class CallRecorder:
    """The file that calls are appended to, each kind of call once."""

    def __init__(self, path: Path) -> None:
        """Raise EndpointError if the file can't be written; existing lines aren't repeated."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._seen = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise EndpointError(f"--record {path}: {error.strerror}; name a file that can be written") from None

    def add(self, call: Call) -> None:
        """Append a call, unless it's already recorded, or unsigned: that needs no permission."""
        if not call.access_key:
            return
        line = json.dumps(
            {
                "service": call.service,
                "operation": call.operation,
                "region": call.region,
                "names": identifiers(call),
            },
            sort_keys=True,
        )
        if line not in self._seen:
            self._seen.add(line)
            self._file.write(f"{line}\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_record(path: Path) -> list[dict[str, Any]]:
    """Return the recorded calls in the order in which each kind first occurred."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def identifiers(call: Call) -> dict[str, str]:
    """Return the members of a call that name something, nested ones as `Outer.1.Inner`."""
    return {
        key: value
        for key, value in sorted(_flat(_members(call)))
        if _NAMES.search(key) and len(value) <= _LONGEST and "\n" not in value
    }


def _members(call: Call) -> Mapping[str, Any]:
    if call.operation == "Unknown":
        return {}
    if call.protocol in ("ec2", "query"):
        form = parse_qs(call.body.decode("utf-8", "replace"))
        return {key: values[0] for key, values in {**call.query, **form}.items()}
    try:
        return parameters(call)
    except ServiceError:
        # The body is XML or an object's content: names are in the path and the query.
        return parameters(replace(call, body=b""))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value, 1):
            yield from _flat(inner, f"{path}.{number}")
    elif isinstance(value, str):
        yield path, value
