"""The catalog's file about EKS, from an account's responses: versions with their dates, and add-on versions.

`python -m generate.eks` calls an account. Only HyperPod's developer guide lists the versions that HyperPod supports, so
they aren't updated.
"""

import datetime
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from hpkit.catalog import addons
from hpkit.cli.common.aws_session import aws_session
from hpkit.clients.aws import call_all
from hpkit.clients.calls import ApiCall, FailedCall
from hpkit.errors import ToolError
from hpkit.preflight.calls import KUBERNETES_VERSIONS
from hpkit.project import project_root, today

__all__ = ["FILE", "command"]

FILE: Final = "infra/hpkit/catalog/data/eks.json"
_SOURCE: Final = "account"
_DAYS: Final = {
    "released": "releaseDate",
    "endOfStandardSupport": "endOfStandardSupportDate",
    "endOfExtendedSupport": "endOfExtendedSupportDate",
}
_SHOWN: Final = {
    "released": "released",
    "endOfStandardSupport": "end of standard support",
    "endOfExtendedSupport": "end of extended support",
}


def supported(versions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the supported Kubernetes versions in a response of DescribeClusterVersions, oldest first."""
    names = {each["clusterVersion"] for each in versions if each.get("versionStatus") != "UNSUPPORTED"}
    return tuple(sorted(names, key=_order))


def refreshed(
    text: str,
    *,
    versions: Sequence[Mapping[str, Any]],
    offered: Mapping[str, Sequence[Mapping[str, Any]]],
    region: str,
    today: datetime.date,
) -> str:
    """Return the file with an account's responses.

    text: the current file. versions: `clusterVersions` of DescribeClusterVersions. offered: Kubernetes version →
    `addons` of DescribeAddonVersions.

    Facts that the file already has keep their source, so that the same response gives the same text. Versions that EKS
    no longer lists keep their dates, and lose their add-ons.
    """
    data = json.loads(text)
    calendar = data["kubernetesVersions"]
    for version in versions:
        days = {name: _day(version[member]) for name, member in _DAYS.items() if version.get(member) is not None}
        row = calendar.get(version["clusterVersion"], {})
        if days.keys() == _DAYS.keys() and days != {name: row.get(name) for name in _DAYS}:
            calendar[version["clusterVersion"]] = {**days, "source": _SOURCE}
    data["kubernetesVersions"] = {name: calendar[name] for name in sorted(calendar, key=_order)}
    data["addonVersions"] = _addons(offered)
    if not differences(text, _text(data)):
        return text
    data["sources"][_SOURCE] = {
        "title": f"Amazon EKS API, DescribeClusterVersions and DescribeAddonVersions in {region}",
        "url": "https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html",
        "date": today.isoformat(),
    }
    used = {_SOURCE, data["clusterHour"]["source"], *(row["source"] for row in calendar.values())}
    data["sources"] = {name: source for name, source in data["sources"].items() if name in used}
    return _text(data)


def _addons(offered: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return add-on → Kubernetes version → versions, newest first, and the default, for add-ons that hpkit knows."""
    addon_names = {addon.name for addon in addons()}
    versions_by_addon: dict[str, dict[str, Any]] = {}
    for kubernetes in sorted(offered, key=_order):
        for addon in offered[kubernetes]:
            if addon["addonName"] in addon_names and addon.get("addonVersions"):
                versions_by_addon.setdefault(addon["addonName"], {})[kubernetes] = _row(
                    addon["addonVersions"], kubernetes
                )
    return {name: versions_by_addon[name] for name in sorted(versions_by_addon)}


def _row(listed: Sequence[Mapping[str, Any]], kubernetes: str) -> dict[str, Any]:
    default = next(
        (
            version["addonVersion"]
            for version in listed
            for fit in version.get("compatibilities", ())
            if fit.get("clusterVersion") == kubernetes and fit.get("defaultVersion")
        ),
        None,
    )
    return {"default": default, "versions": [each["addonVersion"] for each in listed]}


def differences(old: str, new: str) -> list[str]:
    """Return the differences of another text of the file, a line each; sources alone aren't a difference."""
    before, after = json.loads(old), json.loads(new)
    lines = list(_version_differences(before["kubernetesVersions"], after["kubernetesVersions"]))
    for name in sorted(before["addonVersions"].keys() | after["addonVersions"].keys()):
        rows = [side["addonVersions"].get(name, {}) for side in (before, after)]
        for kubernetes in sorted(rows[0].keys() | rows[1].keys(), key=_order):
            lines += _addon_differences(f"{name} on {kubernetes}", *(each.get(kubernetes) for each in rows))
    return lines


def _version_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, row in after.items():
        past = before.get(name)
        shown = [f"{_SHOWN[key]} {row[key]}" for key in _DAYS]
        if past is None:
            yield f"+ Kubernetes {name}: {', '.join(shown)}"
            continue
        changed = [f"{_SHOWN[key]} {past[key]} → {row[key]}" for key in _DAYS if past[key] != row[key]]
        if changed:
            yield f"~ Kubernetes {name}: {', '.join(changed)}"


def _addon_differences(label: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[str]:
    if old == new:
        return
    if old is None or new is None:
        row = old or new or {}
        yield f"{'-' if new is None else '+'} {label}: {len(row['versions'])} versions, default {row['default']}"
        return
    parts = [f"default {old['default']} → {new['default']}"] if old["default"] != new["default"] else []
    parts += [f"+{each}" for each in new["versions"] if each not in old["versions"]]
    parts += [f"-{each}" for each in old["versions"] if each not in new["versions"]]
    yield f"~ {label}: {', '.join(parts) or 'another order'}"


def _day(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).date().isoformat()


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _text(data: Mapping[str, Any]) -> str:
    """Write the file with a line per source and row, so that changes are readable."""
    lines = [f'  "about": {_json(data["about"])}']
    lines.append(_block("sources", {name: _json(row) for name, row in data["sources"].items()}))
    lines.append(f'  "clusterHour": {_json(data["clusterHour"])}')
    lines.append(_block("kubernetesVersions", {name: _json(row) for name, row in data["kubernetesVersions"].items()}))
    nested = {name: _nested(rows) for name, rows in data["addonVersions"].items()}
    lines.append(_block("addonVersions", nested))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(name: str, rows: Mapping[str, str]) -> str:
    inner = ",\n".join(f"    {_json(key)}: {row}" for key, row in rows.items())
    return f"  {_json(name)}: {{\n{inner}\n  }}" if rows else f"  {_json(name)}: {{}}"


def _nested(rows: Mapping[str, Any]) -> str:
    inner = ",\n".join(f"      {_json(key)}: {_json(row)}" for key, row in rows.items())
    return f"{{\n{inner}\n    }}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@click.command("python -m generate.eks")
@click.option("--region", default="us-west-2", show_default=True, metavar="R", help="The region whose API is called.")
@click.option("--profile", metavar="P", help="Profile of the AWS configuration; default: the AWS SDK's own choice.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if EKS's answer differs.")
def command(region: str, profile: str | None, only_check: bool) -> None:
    """Read EKS's Kubernetes and add-on versions, show differences from the catalog, and write it.

    Calls DescribeClusterVersions and DescribeAddonVersions, and changes nothing in the account. No API lists the
    Kubernetes versions that HyperPod supports; that list and the prices stay as they are.
    """
    versions, offered = _ask(region, profile)
    path = project_root() / FILE
    old = path.read_text(encoding="utf-8")
    new = refreshed(old, versions=versions, offered=offered, region=region, today=today())
    if new == old:
        click.echo(f"{FILE} matches EKS in {region}")
        return
    for line in differences(old, new):
        click.echo(line)
    if only_check:
        click.echo(f"{FILE} is out of date; run `python -m generate.eks`", err=True)
        sys.exit(1)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(new, encoding="utf-8")
    temporary.replace(path)
    click.echo(f"wrote {FILE}; `make generate` writes what is made from it")


def _ask(region: str, profile: str | None) -> tuple[Sequence[dict[str, Any]], dict[str, Sequence[dict[str, Any]]]]:
    """Return the versions of EKS, and Kubernetes version → add-ons; raises ToolError if a call fails."""
    session = aws_session(profile, region)

    def answers(calls: Sequence[ApiCall]) -> list[dict[str, Any]]:
        responses = call_all(session, calls, on_progress=lambda _done, _total: None)
        for response in responses.values():
            if isinstance(response, FailedCall):
                raise ToolError(f"{response.action}: {response.code}: {response.message}. {response.fix}")
        return [responses[call.key] for call in calls]

    (answer,) = answers([KUBERNETES_VERSIONS])
    names = supported(answer["clusterVersions"])
    listed = answers([ApiCall("eks", "DescribeAddonVersions", {"kubernetesVersion": name}) for name in names])
    return answer["clusterVersions"], {name: each["addons"] for name, each in zip(names, listed, strict=True)}


if __name__ == "__main__":
    command()
