"""`hpkit catalog refresh`: the project's own prices, from the AWS Price List."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from hpkit.catalog import Source
from hpkit.catalog.price_list import PRODUCTS, Found, ProductQuery, price_changes, price_file, read_products
from hpkit.catalog.prices import PRICE_FILE, RegionPrices, regions_of_price_file
from hpkit.changes.review.cost import platform_items
from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts, folded
from hpkit.cli.common.inputs import plans_of
from hpkit.clients.calls import ApiCall, FailedCall
from hpkit.errors import InputError, ToolError
from hpkit.plan.model import Plan
from hpkit.project import project_root, select
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from boto3 import Session

__all__ = ["command"]

# The regions with an endpoint of the Price List API, by the continent that they are nearest to. Source: AWS Billing
# user guide, "Finding services and products": us-east-1, eu-central-1, ap-south-1.
_ENDPOINTS: Final = {"eu": "eu-central-1", "ap": "ap-south-1"}
_ANYWHERE: Final = "us-east-1"
_URL: Final = "https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html"


@click.command("refresh")
@click.option("--profile", metavar="P", help="AWS configuration profile. Default: the AWS SDK's choice.")
@click.option("--dry-run", is_flag=True, help="Show the differences, and write nothing.")
@acts
def command(profile: str | None, dry_run: bool) -> None:
    """Write the on-demand prices of the project's regions to stacks/prices.json.

    Reads the AWS Price List for the region of each stack. It has prices of HyperPod instances and volumes, EKS
    clusters, extended support, NAT gateways, interface endpoints, and FSx for Lustre. Every command uses these prices
    instead of the catalog's, and shows their region and date. Prices that aren't in the price list are reported and
    stay unknown. Writes nothing if no price changed. IAM permission: pricing:GetProducts.
    """
    plans = plans_of(select((), ()))
    regions = sorted({plan.spec.region for plan in plans})
    session = aws_session(profile, _ENDPOINTS.get(regions[0].partition("-")[0], _ANYWHERE))
    path = project_root() / PRICE_FILE
    old_text = path.read_text(encoding="utf-8") if path.is_file() else None
    before = _regions(old_text)
    answers = _ask(session, regions)
    for region in regions:
        for line in _summary(region, answers[region], before, [plan for plan in plans if plan.spec.region == region]):
            click.echo(folded(line, "    ", ""))
    # A region without an answer keeps its prices.
    new_prices = {region: each for region, each in answers.items() if each.instances or each.platform}
    kept = {region: Found(dict(each.instances), dict(each.platform)) for region, each in before.items()}
    kept_or_new = {
        region: new_prices.get(region) or kept[region] for region in regions if region in new_prices or region in kept
    }
    if not new_prices:
        raise ToolError(f"the AWS Price List has no price for {', '.join(regions)}; {PRICE_FILE} stays as it is")
    text = price_file(kept_or_new, before, _source)
    if text == old_text:
        click.echo(f"{PRICE_FILE} is up to date")
        return
    changes = list(price_changes(before, _regions(text)))
    acted("write", PRICE_FILE, done=not dry_run, detail="\n".join(changes))
    for line in changes:
        click.echo(line)
    if dry_run:
        click.echo(f"would write {PRICE_FILE}")
        return
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    click.echo(f"wrote {PRICE_FILE}; commit it, so that reviews use the same prices")


def _regions(text: str | None) -> dict[str, RegionPrices]:
    try:
        return {} if text is None else regions_of_price_file(text)
    except ValueError as error:
        raise InputError(f"{PRICE_FILE} isn't a file of prices: {error}. Restore it from git, or delete it") from None


def _source(region: str) -> Source:
    from hpkit.project import today

    return Source(f"AWS Price List API, GetProducts, {region}, on demand", _URL, today().isoformat())


def _ask(session: "Session", regions: Sequence[str]) -> dict[str, Found]:
    """Return region → its prices; raises ToolError for a call that fails."""
    from hpkit.clients.aws import call_all

    calls = {(region, index): _call(query, region) for region in regions for index, query in enumerate(PRODUCTS)}
    responses = call_all(session, calls.values(), on_progress=lambda _done, _total: None)
    prices = {region: Found() for region in regions}
    for (region, index), call in calls.items():
        response = responses[call.key]
        if isinstance(response, FailedCall):
            raise ToolError(f"{response}. {PRICE_FILE} stays as it is")
        read_products(PRODUCTS[index], response["PriceList"], prices[region])
    return prices


def _call(query: ProductQuery, region: str) -> ApiCall:
    filters = {"regionCode": region, **query.attributes}
    return ApiCall(
        "pricing",
        "GetProducts",
        {
            "ServiceCode": query.service,
            "Filters": [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in filters.items()],
        },
    )


def _summary(region: str, listed: Found, before: Mapping[str, RegionPrices], plans: Iterable[Plan]) -> Iterator[str]:
    """Yield the price list's prices for a region, and the missing ones."""
    if not listed.instances and not listed.platform:
        stays = "its prices stay as they are" if region in before else "its costs stay unknown"
        yield f"{region}: the AWS Price List has no price for this region, so {stays}"
    else:
        count = plural(len(listed.instances), "instance type")
        yield f"{region}: {count}, {plural(len(listed.platform), 'other price')}"
        used = {name: plan.stack for plan in plans for name in _types(plan)}
        missing = [f"{name} ({used[name]})" for name in sorted(used.keys() - listed.instances.keys())]
        needed = {key: plan.stack for plan in plans for key in _platform_prices(plan)}
        missing += [
            f"{rate.title} ({needed[rate.key]})"
            for query in PRODUCTS
            for rate in query.rates
            if rate.key in needed.keys() - listed.platform.keys()
        ]
        if missing:
            yield (
                f"    not in the price list: {', '.join(missing)}. These costs are shown as unknown, or as `about` "
                "another region's"
            )
    yield from (f"    skipped: {each}" for each in listed.skipped)


def _platform_prices(plan: Plan) -> set[str]:
    """Return the names of the prices that a plan's platform needs in addition to those of its instances."""
    keys = {item.key for item in platform_items(plan)}
    eks = set() if plan.spec.eks.existing else {"eksClusterHour", "eksExtendedSupportHour"}
    return keys | eks | ({"natGatewayGb"} if "natGatewayHour" in keys else set())


def _types(plan: Plan) -> set[str]:
    groups = {name for group in plan.own_groups for name in group.spec.types}
    return groups | {name for pool in plan.node_pools for name in pool.instance_types}
