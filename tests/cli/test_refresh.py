"""`hpkit catalog refresh`, with boto3 against a local price list."""

import json
import subprocess
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError, UnauthorizedSSOTokenError

from hpkit import project
from hpkit.catalog.prices import PRICE_FILE
from hpkit_local.aws.services.pricing import operations
from hpkit_local.aws.services.pricing.products import products
from hpkit_local.aws.testing import running_endpoint
from tests.cli.invoke import hpkit
from tests.documents import document

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint() as running:
        yield running


@pytest.fixture
def refresh(endpoint, tmp_path):
    endpoint.reset()
    folder = tmp_path / "acme"
    folder.mkdir()
    assert hpkit("init", "acme", "--region", "us-east-1", "--ci", "none", cwd=folder).returncode == 0

    def run(*words, command=("catalog", "refresh")):
        return hpkit(*command, *words, cwd=folder, AWS_ENDPOINT_URL=endpoint.url, **KEYS)

    run.folder, run.file, run.endpoint = folder, folder / PRICE_FILE, endpoint
    return run


def change(monkeypatch, edit):
    """Make the price list return products as `edit` changes them."""
    monkeypatch.setattr(operations, "products", lambda: [each for one in products() if (each := edit(one))])


def with_price(one, price):
    (term,) = one["terms"]["OnDemand"].values()
    (rate,) = term["priceDimensions"].values()
    rate["pricePerUnit"]["USD"] = price
    return one


def usage_type(one):
    return one["product"]["attributes"]["usagetype"]


def test_prices_are_written_once_sorted_and_used_from_then_on(refresh, monkeypatch):
    before = refresh(command=("quota",)).stdout
    assert "at prices of us-east-1 (2026-09-16)" in before
    change(monkeypatch, lambda one: with_price(one, "10") if usage_type(one) == "USE1-Cluster:ml.g6e.xlarge" else one)
    (planned,) = document(refresh("--dry-run", "--format", "json").stdout)["items"]
    assert (planned["action"], planned["target"], planned["done"]) == ("write", PRICE_FILE, False)
    assert not refresh.file.exists()
    done = refresh()
    assert (done.returncode, done.stderr) == (
        0,
        f"warning: these prices are from {refresh.endpoint.url}, not from AWS\n",
    )
    assert f"wrote {PRICE_FILE}" in done.stdout
    (block,) = json.loads(refresh.file.read_text())["prices"]
    assert list(block["hourly"]) == sorted(block["hourly"])
    assert block["platform"]["natGatewayHour"] == "0.045"
    assert "not in the price list" not in done.stdout
    written = refresh.file.stat().st_mtime_ns
    assert "is up to date" in refresh().stdout
    assert refresh.file.stat().st_mtime_ns == written


def test_differences_are_shown_and_an_unchanged_region_keeps_its_date(refresh, monkeypatch):
    refresh()
    data = json.loads(refresh.file.read_text())
    data["sources"]["us-east-1"]["date"] = "2026-01-01"
    refresh.file.write_text(json.dumps(data))
    refresh()
    assert json.loads(refresh.file.read_text())["sources"]["us-east-1"]["date"] == "2026-01-01"
    edited = {"USE1-Cluster:ml.g6e.xlarge": "3", "USE1-Cluster:ml.p5.48xlarge": None}
    change(
        monkeypatch,
        lambda one: one if (own := edited.get(usage_type(one), "")) == "" else own and with_price(one, own),
    )
    shown = refresh().stdout
    assert "~ us-east-1 ml.g6e.xlarge: 2.61 → 3" in shown
    assert "- us-east-1 ml.p5.48xlarge: 66.048" in shown
    assert json.loads(refresh.file.read_text())["sources"]["us-east-1"]["date"] > "2026-01-01"


def test_what_a_stack_needs_and_has_no_price_is_named_with_the_stack(refresh, monkeypatch):
    change(monkeypatch, lambda one: None if usage_type(one).endswith(("ml.g6e.xlarge", "NatGateway-Hours")) else one)
    said = " ".join(refresh().stdout.split())
    assert "not in the price list: ml.g6e.xlarge (acme-dev), NAT gateway (acme-dev). " in said


def test_all_commands_use_the_same_prices(refresh, monkeypatch):
    """15 × ml.g6e.xlarge at $10, 1 × ml.m5.4xlarge at $1, EKS at $2."""
    prices = {"Cluster:ml.g6e.xlarge": "10", "Cluster:ml.m5.4xlarge": "1", "AmazonEKS-Hours:perCluster": "2"}
    change(
        monkeypatch,
        lambda one: with_price(one, own) if (own := prices.get(usage_type(one).removeprefix("USE1-"))) else one,
    )
    refresh()
    for command in ("init -q -b main", "add -A", "-c user.name=a -c user.email=a@example.com commit -qm acme"):
        subprocess.run(["git", *command.split()], cwd=refresh.folder, check=True)

    def document(*command):
        return json.loads(refresh("--format", "json", command=command).stdout)

    (share, *_) = document("quota")["items"][0]["types"][0]["teams"]
    assert (share["monthlyUsd"], share["pricesOf"]) == (5 * 10 * 730, "us-east-1")
    day = project.today()
    assert f"at prices of us-east-1 ({day})" in refresh(command=("quota",)).stdout
    assert f"$10 per hour on demand ({day}: {refresh.endpoint.url})" in " ".join(
        refresh(command=("describe", "group", "gpu")).stdout.split()
    )
    cost = document("review", "--base", "main", "--quick", "--stack", "acme-dev")["stacks"][0]["cost"]
    assert cost["guaranteed"]["after"]["known"] == "110230.00"
    assert Decimal(cost["platform"]["after"]["known"]) > 2 * 730
    settings = refresh.folder / "stacks" / "acme.policy.json"
    settings.write_text(json.dumps({"budget-ceiling": {"monthlyUsd": 1000}}))
    said = " ".join(refresh("--policies", command=("validate",)).stdout.split())
    assert "costs 110,230 US dollars per month on demand; the budget is 1,000" in said
    assert f"at the prices of us-east-1 ({day})" in said


def test_a_product_that_cannot_be_read_is_skipped(refresh, monkeypatch):
    change(monkeypatch, lambda one: one | {"terms": {}} if "Cluster:ml.g6e.xlarge" in usage_type(one) else one)
    done = refresh()
    assert done.returncode == 0
    assert "USE1-Cluster:ml.g6e.xlarge: without terms.OnDemand" in " ".join(done.stdout.split())


def test_a_region_that_the_price_list_lacks_keeps_its_prices(refresh, monkeypatch):
    refresh()
    written = refresh.file.read_bytes()
    change(monkeypatch, lambda _one: None)
    done = refresh()
    assert done.returncode == 1
    assert "us-east-1: the AWS Price List has no price for this region" in " ".join(done.stdout.split())
    assert done.stderr == f"error: the AWS Price List has no price for us-east-1; {PRICE_FILE} stays as it is\n"
    assert refresh.file.read_bytes() == written


def test_throttled_calls_are_repeated(refresh):
    refresh.endpoint.set_faults(throttle=0.3)
    assert refresh().returncode == 0


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, "GetProducts"),
            "pricing:GetProducts: AccessDeniedException: not authorized. Allow pricing:GetProducts to the caller.",
        ),
        (
            ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "expired"}}, "GetProducts"),
            "These credentials have expired: log in again",
        ),
        (
            ClientError({"Error": {"Code": "ExpiredNextTokenException", "Message": "expired"}}, "GetProducts"),
            "ExpiredNextTokenException: expired. Run it again in a minute.",
        ),
        (UnauthorizedSSOTokenError(), "These credentials have expired: log in again"),
        (
            ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "GetProducts"),
            "Rate exceeded. Run it again in a minute.",
        ),
        (KeyboardInterrupt(), "Aborted!"),
    ],
)
def test_a_failure_names_its_fix_and_leaves_the_old_file(refresh, monkeypatch, error, message):
    refresh()
    written = refresh.file.read_bytes()

    def fail(*_args, **_params):
        raise error

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", fail)
    done = refresh()
    assert done.returncode == 1
    assert message in done.stderr
    assert refresh.file.read_bytes() == written
    assert not list(refresh.file.parent.glob(".*"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sources": {}, "prices": [{"region": "us-east-1"}]}'])
def test_a_broken_file_is_an_error_with_its_fix(refresh, text):
    refresh.file.write_text(text)
    for command in ("catalog", "refresh"), ("quota",):
        done = refresh(command=command)
        assert done.returncode == 1
        assert f"error: {PRICE_FILE} isn't a file of prices: " in done.stderr
