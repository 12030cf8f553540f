"""`hpkit catalog refresh`, with answers of the AWS Price List in the format that its API documents."""

import json
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, UnauthorizedSSOTokenError
from botocore.validate import ParamValidator

from hpkit import project
from hpkit.catalog.prices import PRICE_FILE
from tests.cli.invoke import hpkit
from tests.documents import document

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
# A request of each service with the pages of its answer, for us-east-1 and a few of its products.
RECORDED = [json.loads(file.read_text()) for file in sorted((Path(__file__).parent / "prices").glob("*.json"))]


@pytest.fixture
def refresh(tmp_path, monkeypatch):
    folder = tmp_path / "acme"
    folder.mkdir()
    assert hpkit("init", "acme", "--region", "us-east-1", "--ci", "none", cwd=folder).returncode == 0
    change(monkeypatch, lambda one: one)

    def run(*words, command=("catalog", "refresh")):
        return hpkit(*command, *words, cwd=folder, **KEYS)

    run.folder, run.file = folder, folder / PRICE_FILE
    return run


def change(monkeypatch, edit):
    """Make the price list return products as `edit` changes them; None removes one."""

    def call(client, operation, params):
        model = client.meta.service_model.operation_model(operation)
        require_valid(params, model.input_shape)
        token = params.pop("NextToken", None)
        (pages,) = [recorded["pages"] for recorded in RECORDED if recorded["request"] == params]
        tokens = [None, *(page.get("NextToken") for page in pages)]
        answer = dict(pages[tokens.index(token)])
        products = [edit(json.loads(text)) for text in answer["PriceList"]]
        answer["PriceList"] = [json.dumps(product) for product in products if product]
        require_valid(answer, model.output_shape)
        return answer

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", call)


def require_valid(document, shape):
    report = ParamValidator().validate(document, shape)
    assert not report.has_errors(), report.generate_report()


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
    assert (done.returncode, done.stderr) == (0, "")
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
    cost = document("review", "--base", "main", "--quick", "--stack", "acme-dev")["stacks"][0]
    assert cost["minimumCost"]["after"]["known"] == "110230.00"
    assert Decimal(cost["platformCost"]["after"]["known"]) > 2 * 730


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
