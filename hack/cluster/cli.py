"""The command line of the sandbox."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from cluster import (
    agnhost,
    images,
    kubeadm,
    lifecycle,
    load_balancer,
    model,
    nodes,
    operator,
    operator_image,
    policy_enforcer,
    processes,
    providers,
    releases,
    status,
    teardown,
)
from cluster.console import SandboxError, say, step

if TYPE_CHECKING:
    from collections.abc import Sequence

_DESCRIPTION = "A real Kubernetes cluster on this machine, for development and tests."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(words)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return int(options.run(options) or 0)
    except SandboxError as error:
        say(f"hack/sandbox: {error}")
        return 1
    except KeyboardInterrupt:
        say("hack/sandbox: interrupted; `up` again goes on, `down` cleans up")
        return 130


def _terminated(*_: object) -> None:
    """End in an orderly way: whatever is being waited for, for example a build, ends as well."""
    raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="hack/sandbox", description=_DESCRIPTION)
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("--name", default="dev", help="the sandbox (default: dev)")
    on_node = argparse.ArgumentParser(add_help=False)
    on_node.add_argument("--node", required=True, help="the node, for example dev-control-plane")

    versioned = argparse.ArgumentParser(add_help=False)
    versioned.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help=f"for example 1.34 or v1.34.2; of {releases.span()} "
        f"(default: ${releases.VARIABLE}, else {releases.DEFAULT})",
    )

    up = commands.add_parser(
        "up", parents=[named, versioned], help="bring a sandbox up, or heal it"
    )
    up.add_argument(
        "--nodes", type=int, help="control-plane nodes; 0 needs no root (default: 1; managed: 0)"
    )
    up.add_argument("--workers", type=int, default=0, help="further nodes")
    up.add_argument(
        "--platform",
        choices=model.PLATFORMS,
        default=model.KUBEADM,
        help="what the cluster looks like (default: kubeadm)",
    )
    up.add_argument(
        "--like",
        choices=providers.LIKE,
        default=providers.LIKE[0],
        help="platform managed: whose nodes they look like (default: eks)",
    )
    up.add_argument(
        "--kubeadm",
        action="store_true",
        help="let the real kubeadm make the control plane, in the nodes",
    )
    up.add_argument("--no-operator", action="store_true", help="do not install the operator")
    up.set_defaults(run=_up)

    down = commands.add_parser("down", parents=[named], help="remove a sandbox and all traces")
    down.set_defaults(run=lambda options: teardown.down(options.name))

    env = commands.add_parser("env", parents=[named], help="print variables for eval")
    env.set_defaults(run=_env)

    state = commands.add_parser("status", help="list sandboxes and what is left of them")
    state.add_argument("-o", "--output", choices=["table", "json"], default="table")
    state.set_defaults(run=lambda options: print(status.report(options.output)))

    setup = commands.add_parser(
        "setup", parents=[versioned], help="prepare this machine: packages, binaries, images"
    )
    setup.set_defaults(run=_setup)

    image = commands.add_parser("image", help="build the operator's image")
    image.add_argument("--name", help="load it into this sandbox's nodes")
    image.add_argument(
        "--agnhost", action="store_true", help=f"load {agnhost.NAME} instead, for tests of networks"
    )
    image.set_defaults(run=_image)

    logs = commands.add_parser("logs", parents=[named], help="print a daemon's output")
    logs.add_argument("component", nargs="?", help="for example etcd or dev-worker-kubelet")
    logs.set_defaults(run=_logs)

    release = commands.add_parser(
        "release", parents=[named], help="keep an OpenShift sandbox at its release; up starts it"
    )
    release.add_argument("--render", metavar="OVERLAY", help="only render its manifests")
    release.set_defaults(run=_release)

    policies = commands.add_parser(
        policy_enforcer.DAEMON,
        parents=[named],
        help="enforce NetworkPolicies until it is ended; up --platform openshift starts it",
    )
    policies.set_defaults(
        run=lambda options: policy_enforcer.PolicyEnforcer(model.require(options.name)).run()
    )

    balancer = commands.add_parser(
        load_balancer.DAEMON,
        parents=[named],
        help="serve the API servers of a sandbox at one address; up --kubeadm starts it",
    )
    balancer.set_defaults(run=lambda options: load_balancer.run(model.require(options.name)))

    upgrade = commands.add_parser(
        "upgrade", parents=[named, on_node, versioned], help="run kubeadm upgrade on a node"
    )
    upgrade.set_defaults(run=_upgrade)

    node = commands.add_parser("node", parents=[named, on_node], help="break and mend a node")
    node.add_argument("action", choices=["start", "stop", "kill-kubelet"])
    node.set_defaults(run=_node)

    run = commands.add_parser("exec", parents=[named, on_node], help="run a command on a node")
    run.add_argument("command", nargs="+", help="after --")
    run.set_defaults(run=_exec)
    return top


def _up(options: argparse.Namespace) -> None:
    with_operator = not options.no_operator
    managed = options.platform == model.MANAGED
    if managed and options.nodes:
        raise SandboxError("the control plane of platform managed has no nodes; use --workers")
    if options.kubeadm and (options.platform != model.KUBEADM or options.nodes == 0):
        raise SandboxError("--kubeadm needs platform kubeadm and a control-plane node")
    nodes = 1 if options.nodes is None and not managed else options.nodes or 0
    lifecycle.up(
        options.name,
        nodes,
        options.workers,
        with_operator=with_operator,
        kind=lifecycle.ClusterKind(
            options.platform, options.like if managed else "", options.kubeadm
        ),
        kubernetes=options.kubernetes_version,
    )


def _env(options: argparse.Namespace) -> None:
    sandbox = model.require(options.name)
    binaries = sandbox.state / "bin"
    for variable, value in {
        "KUBECONFIG": sandbox.kubeconfig,
        "KUBE_SCHEDULER_OPERATOR_SANDBOX": sandbox.name,
        "KUBE_SCHEDULER_OPERATOR_SANDBOX_STATE": sandbox.state,
        "KUBE_SCHEDULER_OPERATOR_IMAGE": images.OPERATOR,
        "KUBEBUILDER_ASSETS": binaries,
    }.items():
        print(f"export {variable}={shlex.quote(str(value))}")
    print(f'export PATH={shlex.quote(str(binaries))}:"$PATH"')


def _setup(options: argparse.Namespace) -> None:
    version = releases.choose(options.kubernetes_version)
    found = lifecycle.setup(with_nodes=os.geteuid() == 0, kubernetes=version)
    if os.geteuid() == 0:
        images.pause()
        images.scheduler(found["kube-scheduler"], version)
        operator_image.build()
    say("this machine is ready: hack/sandbox up")


def _image(options: argparse.Namespace) -> None:
    if options.agnhost:
        agnhost.load(model.require(options.name or "dev"))
        return
    if options.name:
        operator.load_image(model.require(options.name))
        return
    target = images.folder() / "kube-scheduler-operator.tar"
    image = operator_image.build()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    with step("operator image: archive"), temporary.open("wb") as file:
        image.write(file)
    temporary.rename(target)
    print(target)


def _logs(options: argparse.Namespace) -> None:
    sandbox = model.require(options.name)
    if options.component is None:
        print("\n".join(lifecycle.daemons(sandbox)))
        return
    file = processes.log_file(sandbox, options.component)
    if not file.exists():
        known = ", ".join(lifecycle.daemons(sandbox))
        raise SandboxError(f"there is no log of {options.component}; there may be of: {known}")
    sys.stdout.write(file.read_text(errors="replace"))


def _release(options: argparse.Namespace) -> None:
    # What needs libraries is imported only here: the other commands need none.
    from cluster import release

    sandbox = model.require(options.name)
    if options.render:
        release.render(sandbox, options.render)
    else:
        release.keep(sandbox)


def _upgrade(options: argparse.Namespace) -> None:
    sandbox = model.require(options.name)
    version = releases.choose(options.kubernetes_version)
    node = sandbox.node(options.node)
    kubeadm.provide_version(sandbox, version)
    print(kubeadm.upgrade(sandbox, node, version, first=node == sandbox.nodes[0]))


def _node(options: argparse.Namespace) -> None:
    sandbox = model.require(options.name)
    node = sandbox.node(options.node)
    match options.action:
        case "start":
            lifecycle.start_node(sandbox, node)
        case "stop":
            nodes.power_off(sandbox, node)
        case _:
            nodes.kill_kubelet(sandbox, node)


def _exec(options: argparse.Namespace) -> None:
    sandbox = model.require(options.name)
    command = nodes.enter(sandbox, sandbox.node(options.node), options.command)
    sys.stdout.flush()
    os.execvpe(command[0], command, nodes.environment(sandbox))
