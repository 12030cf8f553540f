"""`hpkit cluster usage`: its formats agree, and what couldn't be read never counts as zero."""

import json
import subprocess
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, UnauthorizedSSOTokenError
from botocore.validate import ParamValidator

from hpkit import project
from hpkit.catalog.prices import PRICE_FILE
from hpkit.cli.cluster import usage
from tests.cli.invoke import hpkit
from tests.cluster.live.builders import observed, queue, workload
from tests.cluster.usage.test_usage import node, platform
from tests.documents import document
from tests.program.cloud import ROOT

SEEN = observed(
    platform=platform(node("i-0", 3), node("i-1", 3)),
    tasks=(workload("smith", "<train>", 1, runs=True, minutes=60),),
    queues=(queue("john", 4), queue("smith", 0)),
)


@pytest.fixture
def run(monkeypatch):
    def run(*words, seen=SEEN):
        def observe(*_, on_workload, **__):
            for task in seen.tasks:
                on_workload(task)
            return seen

        monkeypatch.setattr(usage, "observe", observe)
        return hpkit("cluster", "usage", "--stack", "handson-dev", *words, cwd=ROOT)

    return run


def test_text_and_json_show_the_usage(run):
    document = json.loads(run("--format", "json").stdout)
    rows = {row["name"]: row for row in document["rows"]}
    assert (rows["smith"]["used"], rows["smith"]["borrowed"], rows["john"]["lent"]) == (1, 1, 1)
    assert sum(float(row["cost"]) for row in document["rows"]) == float(document["total"]["cost"]) > 0
    text = " ".join(run().stdout.split())
    assert text.startswith("handson-dev: usage by team, 2026-10-23 to 2026-11-22 team used borrowed")
    assert "note: nodes that were removed, Workloads that were deleted and earlier quotas aren't known" in text


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        (replace(SEEN, unread=frozenset({"workloads"})), "workloads couldn't be read, so hours would be missing"),
        (replace(SEEN, namespaces=("hyperpod-ns-john",)), "workloads of all namespaces couldn't be read"),
        (replace(SEEN, platform=None), "nodes of the cluster couldn't be read"),
        (replace(SEEN, platform=platform()), "no node of handson is known between 2026-10-23 and 2026-11-22"),
    ],
)
def test_what_could_not_be_read_or_does_not_exist_is_an_error_and_leaves_the_history(run, tmp_path, seen, error):
    history = tmp_path / "usage.jsonl"
    assert run("--history", str(history)).returncode == 0
    before = history.read_text(encoding="utf-8")
    answer = run(seen=seen)
    assert (answer.returncode, error in " ".join(answer.stderr.split())) == (1, True), answer.stderr
    if seen.platform is None or seen.platform.nodes:
        run("--history", str(history), seen=seen)
        assert history.read_text(encoding="utf-8") == before


def test_a_node_that_begins_later_than_this_machine_s_time_is_a_note(run):
    answer = run(seen=replace(SEEN, platform=platform(node("i-0", 3), node("i-1", -3))))
    assert "1 nodes and Workloads begin after this machine's time: the clocks differ" in " ".join(answer.stdout.split())


def test_with_a_history_what_ended_unseen_is_a_note_in_each_later_run(run, tmp_path):
    history = str(tmp_path / "usage.jsonl")
    run("--history", history)
    for hours in (2, 3):
        later = replace(SEEN, time=SEEN.time + timedelta(hours=hours), tasks=())
        output = " ".join(run("--history", history, seen=later).stdout.split())
        assert "0 nodes and 1 admission ended between two readings" in output
        assert "between two readings aren't counted; the longest time between two was 2h" in output


def test_a_history_in_a_missing_folder_is_refused_before_the_cluster_is_read(run, tmp_path):
    file = tmp_path / "no" / "usage.jsonl"
    answer = run("--history", str(file), seen=None)
    assert (answer.returncode, f"Run `mkdir -p {file.parent}`" in " ".join(answer.stderr.split())) == (1, True)


def test_a_range_of_more_than_ten_years_is_refused(run):
    answer = run("--since", "99999999d")
    assert (answer.returncode, "at most 3650d" in " ".join(answer.stderr.split())) == (2, True)
    assert run("--since", "3650d").returncode == 0


def test_a_file_that_is_no_history_stays_as_it_is(run, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("hello\n", encoding="utf-8")
    answer = run("--history", str(file))
    assert answer.returncode == 1
    assert f"{file}:1:1 isn't a line of a usage history" in " ".join(answer.stderr.split())
    assert file.read_text(encoding="utf-8") == "hello\n"


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
        monkeypatch, lambda one: one if (own := edited.get(usage_type(one), "")) == "" else own and with_price(one, own)
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
    cost = document("review", "--base", "main", "--stack", "acme-dev")["stacks"][0]
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


FAILURES = [
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
    (KeyboardInterrupt(), "interrupted"),
]


def test_a_failure_names_its_fix_and_leaves_the_old_file(refresh, monkeypatch):
    refresh()
    written = refresh.file.read_bytes()
    call = Mock()
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", call)
    for error, message in FAILURES:
        call.side_effect = error
        done = refresh()
        assert done.returncode == (130 if isinstance(error, KeyboardInterrupt) else 1)
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
