"""Links of the pages have targets, and the example on the page about Karpenter is valid."""

import json
import os
import re
import textwrap
import tomllib
from pathlib import Path, PurePath

import click
import pytest
import yaml
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from generate.cases import TextFolder
from hpkit.cli import SECTIONS
from hpkit.config import parse, read_text
from hpkit.config.reading.compose import composed
from tests.builders import findings, organization, team

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        ROOT / "tests" / "security" / "trust.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
# Options of other tools that pages name next to commands of hpkit: Pulumi's, AWS's.
OF_OTHERS = {"--policy-pack-config", "--refresh", "--create-bucket-configuration"}


# The badge's address is that of the repository, wherever it is hosted.
LINK = r"\]\((?!https?:|#|\.\./\.\./actions/)([^)#\s]+)"


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(LINK, text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_links_of_the_pages_in_the_wheel_lead_to_files_in_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    pages = [ROOT / file for file in included if file.endswith(".md")] + list((ROOT / "docs").rglob("*.md"))
    links = {
        os.path.normpath(page.parent.relative_to(ROOT) / target)
        for page in pages
        for target in re.findall(LINK, page.read_text(encoding="utf-8"))
    }
    folders = {str(parent) for file in included for parent in PurePath(file).parents}
    assert {link for link in links if not link.startswith("docs") and link not in {*included, *folders}} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_folders_and_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:generate|infra|local|policies|tests|whatif)/[\w./-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_exist(page):
    assert unknown_commands(page) == []


def test_commands_that_messages_name_exist():
    folders = ("infra", "local", "policies", "whatif", ".github")
    files = (each for folder in folders for each in sorted((ROOT / folder).rglob("*")))
    named = {each: unknown_commands(each) for each in files if each.suffix in {".py", ".md", ".yml", ".yaml"}}
    assert {str(each): words for each, words in named.items() if words} == {}


def unknown_commands(file):
    commands = {name: each.children for section in SECTIONS.values() for name, each in section.items()}
    text = file.read_text(encoding="utf-8")
    typed = re.findall(r"(?:`|\$ )(?:\.venv/bin/)?hpkit ([a-z][a-z-]*)(?: ([a-z][a-z-]+))?", text)
    return [
        " ".join(words)
        for words in typed
        if words[0] not in commands or (words[1] and commands[words[0]] and words[1] not in commands[words[0]])
    ]


# Commands of the AWS CLI that aren't operations of an API, and options that all commands have.
AWS_COMMANDS = {"eks update-kubeconfig", "eks get-token", "ecr get-login-password", "sso login"}
AWS_OPTIONS = {"--region", "--profile", "--query", "--output"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_aws_commands_of_a_page_have_the_parameters_of_the_api(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    wrong = []
    for service, operation, options in re.findall(r"(?:`|\$ |\n)aws ([a-z0-9]+) ([a-z-]+)([^`|\n]*)", text):
        if f"{service} {operation}" in AWS_COMMANDS:
            continue
        model = ServiceModel(Loader().load_service_model("s3" if service == "s3api" else service, "service-2"))
        operations = {xform_name(each, "-"): model.operation_model(each) for each in model.operation_names}
        members = operations[operation].input_shape.members
        known = AWS_OPTIONS | {f"--{xform_name(each, '-')}" for each in members}
        wrong += [(operation, each) for each in re.findall(r" (--[a-z-]+)", options) if each not in known]
        shapes = {xform_name(name, "-"): shape for name, shape in members.items()}
        for option, value in re.findall(r" --([a-z-]+) '([{\[][^']*)'", options):
            report = ParamValidator().validate(json.loads(value), shapes[option])
            wrong += [(operation, report.generate_report())] if report.has_errors() else []
    assert wrong == []


def options_of(command, words):
    """Yield each command below a group, as it is typed, with its options."""
    yield words, {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from options_of(command.get_command(context, name), f"{words} {name}")


@pytest.fixture(scope="module")
def options():
    commands = [(name, each.load(name)) for section in SECTIONS.values() for name, each in section.items()]
    return {words: found for name, command in commands for words, found in options_of(command, name)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_of_a_page_are_those_of_the_commands_that_its_section_names(page, options):
    def options_below(command):
        return {each for words, found in options.items() if f"{words} ".startswith(f"{command} ") for each in found}

    def named(text):
        words = text.split()
        return next((each for each in (" ".join(words[:count]) for count in (3, 2, 1)) if each in options), None)

    wrong = []
    text = page.read_text(encoding="utf-8")
    for typed in re.findall(r"(?:`|\$ )(?:\.venv/bin/)?hpkit ([^`\n]+)", text):
        own = re.split(r" -- | [#|] | && |\)", typed)[0]
        if named(own):
            wrong += [
                (named(own), each) for each in re.findall(r" (--[a-z-]+)", own) if each not in options_below(named(own))
            ]
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        commands = {named(typed) for typed in re.findall(r"hpkit ([a-z -]+)", section)} - {None}
        if commands:
            known = OF_OTHERS.union({"--format"}, *map(options_below, commands))
            wrong += [
                (section.splitlines()[0], each) for each in re.findall(r"`(--[a-z-]+)", section) if each not in known
            ]
    assert wrong == []


def test_the_navigation_has_every_page_once():
    names = re.findall(r"[:-] (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(names) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.fixture
def autoscale():
    return yaml.safe_load((ROOT / "stacks" / "autoscale.yaml").read_text(encoding="utf-8"))


def snippets():
    text = (ROOT / "docs" / "guides" / "karpenter.md").read_text(encoding="utf-8")
    return [yaml.safe_load(textwrap.dedent(each)) for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_the_section_and_the_warm_pool_that_the_page_of_karpenter_shows_are_accepted(autoscale):
    section, pools = snippets()
    dev = autoscale["environments"]["dev"]
    dev |= section
    assert findings(autoscale) == []
    dev["autoscaling"] = {**dev["autoscaling"], "nodePools": pools}
    assert findings(autoscale) == []


def test_the_examples_of_the_page_of_accounts_are_accepted():
    page = (ROOT / "docs" / "guides" / "accounts.md").read_text(encoding="utf-8")
    added, shown, own, shared = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    example = re.sub(r" +account: .*\n", "", (ROOT / "stacks" / "startup.yaml").read_text(encoding="utf-8"))
    two = example.replace("environments:\n  dev:\n", "environmentDefaults:\n") + added
    assert not list(parse(composed(read_text(two.encode()), TextFolder({}), "acme.yaml")).problems)
    document = composed(read_text(own.encode()), TextFolder({"shared.yaml": shared}), "acme.yaml")
    assert document.is_whole
    assert {each.rule for each in parse(document).problems} == {"CFG003"}, "a real file has more"
    assert [document.data["environments"][name]["protect"] for name in ("dev", "prod")] == [False, True]
    governance = yaml.safe_load(shown)["environments"]["prod"]["governance"]
    data = organization(teams=[team("john")], allocations={"john": [{"instanceType": "ml.g5.12xlarge", "count": 2}]})
    data["environments"]["dev"] |= {"account": "210987654321"}
    data["environments"]["dev"]["governance"] |= governance
    assert [each for each in findings(data) if each.severity == "error"] == []
