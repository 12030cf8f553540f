"""The provider's configuration, and the rule of a fake plugin: only loopback endpoints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hpkit.text.formatting import is_loopback
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["CONFIG", "Settings", "loopback", "settings_from"]

# Settings; from `profile` on, they have no effect here.
CONFIG: Final = (
    *("region", "defaultTags", "allowedAccountIds", "forbiddenAccountIds", "assumeRoles", "endpoints"),
    *("profile", "accessKey", "secretKey", "token", "maxRetries", "retryMode", "sharedConfigFiles"),
    *("sharedCredentialsFiles", "s3UsePathStyle", "skipCredentialsValidation", "skipMetadataApiCheck"),
    *("skipRegionValidation", "skipRequestingAccountId", "stsRegion"),
)


@dataclass(frozen=True)
class Settings:
    """The target, and the settings of every resource."""

    endpoint: str
    region: str
    endpoints: Mapping[str, str] = field(default_factory=dict)
    default_tags: Mapping[str, str] = field(default_factory=dict)
    allowed_accounts: tuple[str, ...] = ()
    forbidden_accounts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    latency_factor: float = 0.0


def settings_from(config: Props, environment: Mapping[str, str]) -> Settings:
    """Read the configuration; nested values travel as JSON text."""
    values = {name: _parsed(value) for name, value in config.items() if not is_unknown(value)}
    endpoint = environment.get("AWS_ENDPOINT_URL", "")
    region = values.get("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise PluginError("The local cloud's aws plugin has no region: set aws:region or AWS_REGION.")
    return Settings(
        endpoint=loopback(endpoint, "AWS_ENDPOINT_URL"),
        region=region,
        endpoints=_endpoints(values.get("endpoints") or []),
        default_tags={str(key): str(value) for key, value in (values.get("defaultTags") or {}).get("tags", {}).items()},
        allowed_accounts=tuple(map(str, values.get("allowedAccountIds") or [])),
        forbidden_accounts=tuple(map(str, values.get("forbiddenAccountIds") or [])),
        roles=tuple(role["roleArn"] for role in values.get("assumeRoles") or [] if role.get("roleArn")),
        latency_factor=float(environment.get("HPKIT_LATENCY_FACTOR", "0")),
    )


def loopback(url: str, source: str) -> str:
    """Return the URL if it leads to this machine and nowhere else."""
    if not is_loopback(url):
        shown = f"{source} is {url!r}" if url else f"{source} is not set"
        raise PluginError(
            f"This aws plugin is the local cloud's fake and accepts only loopback endpoints, but {shown}. "
            "To use the local cloud, set it as `hpkit local env` shows; to deploy to AWS, unset PULUMI_HOME, so that "
            "the engine uses the real plugin."
        )
    return url


def _parsed(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _endpoints(entries: list[Mapping[str, str]]) -> dict[str, str]:
    stated = {service: url for entry in entries for service, url in entry.items() if url}
    return {service: loopback(url, f"aws:endpoints.{service}") for service, url in stated.items()}
