"""A platform's partition, region and account, as in its ARNs."""

from dataclasses import dataclass

__all__ = ["AwsAccount", "managed_policy"]


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """An account in one region: partition (`aws`), region, and the account's 12-digit id."""

    partition: str
    region: str
    id: str

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account in this region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.id}:{resource}"

    def role_arn(self, name: str) -> str:
        """Return the ARN of a role of this account."""
        return f"arn:{self.partition}:iam::{self.id}:role/{name}"

    def values(self) -> dict[str, str]:
        """Return its values for the templates of ARNs."""
        return {"partition": self.partition, "region": self.region, "account": self.id}


def managed_policy(account: AwsAccount, name: str) -> str:
    """Return the ARN of a policy that AWS manages."""
    return f"arn:{account.partition}:iam::aws:policy/{name}"
