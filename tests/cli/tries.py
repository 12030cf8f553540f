"""One invocation of each command, with arguments, for tests of all commands."""

# Command → arguments, exit code, and output without an account.
RUNS = {
    "aws adopt": ("--cluster c --region us-west-2", 1, "error: sagemaker:DescribeCluster: NoCredentialsError"),
    "catalog fetch-chart": ("--help", 0, "HPKIT_MIRROR"),
    "aws deployer-policy": ("--stack handson-dev", 0, "3 policies; attach all of them"),
    "aws recover": ("--stack handson-dev", 1, "hpkit local doctor"),
    "aws destroy": ("--stack handson-dev", 1, "hpkit local doctor"),
    "aws steps": ("", 1, "the input isn't the output of `pulumi preview --json`"),
    "mcp": ("", 1, "pip install 'hpkit[mcp]'"),
    "local doctor": ("", 1, "To install them: hpkit local doctor"),
    "cluster grafana": ("export --to exported --stack handson-dev", 2, "handson-dev has no Prometheus"),
    "aws images": ("--stack handson-dev", 0, "nvcr.io/nvidia/k8s-device-plugin"),
    "init": ("acme --dry-run", 1, "another project (hpkit)"),
    "catalog instances": ("p5", 0, "ml.p5.48xlarge"),
    "job new": ("--team john --instance-type ml.g5.12xlarge", 0, "hyperpod-ns-john-localqueue"),
    "local": ("list", 1, "pip install 'hpkit[local]'"),
    "plan": ("", 0, "hyperpod.ComputeQuota john"),
    "aws preflight": ("--stack handson-dev", 2, "no AWS credentials"),
    "quota": ("", 0, "ml.g5.12xlarge: 4 permanent"),
    "whatif recommend": (
        "no.yaml --stack handson-dev --goal fairness>0.9",
        1,
        "error: no.yaml: this file doesn't exist",
    ),
    "whatif record": ("--stack handson-dev --output x.yaml", 2, "no AWS credentials"),
    "whatif rehearse": ("stacks/scenarios/handson.yaml --stack handson-dev", 1, "pip install 'hpkit[local]'"),
    "review": ("", 0, "john"),
    "catalog refresh": ("", 2, "no AWS credentials"),
    "catalog config": ("sharing.borrowLimit", 0, "Percent of its quota that the team may borrow"),
    "catalog rules": ("CAP001", 0, "CAP001 (error, can't be waived)"),
    "catalog schema": ("", 0, '"$schema"'),
    "whatif simulate": ("stacks/handson.yaml --stack handson-dev", 1, "an organization file; pass a scenario"),
    "cluster status": ("--stack handson-dev", 2, "no AWS credentials"),
    "cluster usage": ("--stack handson-dev", 2, "no AWS credentials"),
    "cluster check": ("--stack handson-dev", 2, "no AWS credentials"),
    "aws team-policy": ("--stack handson-dev --team john", 0, "sagemaker:DescribeCluster"),
    "validate": ("", 0, "0 errors"),
    "job why": ("late --stack handson-dev", 2, "no AWS credentials"),
}

SCENARIO = "stacks/scenarios/handson.yaml"
# Commands that print no JSON document, and the reason; docs/reference/json.md lists them.
WITHOUT = {
    "catalog schema": "prints a JSON Schema",
    "aws deployer-policy": "prints IAM policies in JSON",
    "aws steps": "prints steps in JSON",
    "aws team-policy": "prints an IAM policy in JSON",
    "mcp": "speaks a protocol",
    "job new": "prints a manifest in YAML",
}
# Commands whose JSON is validated in tests that have an AWS endpoint, Pulumi, or a Kueue.
ELSEWHERE = (
    *("aws preflight", "aws adopt", "aws adopt run", "aws recover", "aws destroy", "catalog refresh"),
    *("cluster check", "catalog fetch-chart", "cluster grafana export"),
    *("whatif record", "whatif rehearse"),
    *(f"local {verb}" for verb in ("up", "down", "preview", "refresh", "destroy", "start")),
)
ONE_STACK = ("--stack", "handson-dev")
# Further arguments that print JSON: for commands in a group, and for other types of documents.
VARIANTS = {
    "init": ["init", "hpkit", "--dry-run"],
    **{f"local {verb}": ["local", verb, "--name", "none"] for verb in ("stop", "reset")},
    "review": ["review", *ONE_STACK, "--base", "HEAD"],
    "catalog rules": ["catalog", "rules"],
    "quota --team": ["quota", "--team", "john", *ONE_STACK],
    "cluster status --topology": ["cluster", "status", "--topology", *ONE_STACK],
    "job check": ["job", "check", "docs/examples/handson/first.yaml", *ONE_STACK],
    "job check --live": ["job", "check", "docs/examples/fsdp-john.yaml", *ONE_STACK, "--live"],
    "whatif simulate": ["whatif", "simulate", SCENARIO, *ONE_STACK],
    "whatif simulate --vary": [
        "whatif",
        "simulate",
        SCENARIO,
        *ONE_STACK,
        "--vary",
        "teams[smith].fairShareWeight=0,999",
    ],
    "whatif recommend": [
        *("whatif", "recommend", SCENARIO, *ONE_STACK, "--goal", "utilization > 1%", "--trials", "1"),
        *("--workers", "1", "--capacity"),
    ],
    "local status": ["local", "status", "--name", "none"],
    "local list": ["local", "list"],
    "local env": ["local", "env", "--unset"],
    "local doctor": ["local", "doctor"],
}
