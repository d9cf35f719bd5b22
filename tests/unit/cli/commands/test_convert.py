"""`convert`: the result on standard output, what changed on standard error, an exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.effective.profiles.validate import validate_profiles
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version

from .... import builders
from ...config.migrate.conversions import (
    AGENT_SCHEDULER,
    AGENTS,
    CLASSIC,
    DEMO,
    SECOND,
    THREE,
    component,
)

Write = Callable[..., str]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(*documents: Any) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")
        return str(path)

    return write


def config_map(name: str, key: str, document: Any, namespace: str = "kube-system") -> Any:
    data = {key: json.dumps(document), "README": "no document: {"}
    return builders.config_map(name, namespace, **data)


POLICY_MAP = config_map("my-scheduler-policy", "policy.cfg", AGENTS)
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}


def run(*arguments: str) -> int:
    return main(["convert", *arguments])


def test_the_result_and_the_changes_are_apart(file: Write, capsys: Any) -> None:
    assert run("-f", file(DEMO)) == 0
    printed = capsys.readouterr()
    made = yaml.safe_load(printed.out)
    assert made["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert made["clientConnection"] == DEMO["clientConnection"]
    assert "&id" not in printed.out
    lines = printed.err.splitlines()
    assert lines[0].startswith(
        "same behaviour: apiVersion: v1beta2 converted to v1; kube-scheduler 1.35"
    )
    assert all(line.startswith("same behaviour: ") for line in lines)


def test_files_can_be_named_without_a_flag(file: Write, capsys: Any) -> None:
    name = file(DEMO)
    assert run("-f", name) == 0
    expected = capsys.readouterr().out
    assert run(name) == 0
    assert capsys.readouterr().out == expected
    assert run() == 2
    assert "error: no file" in capsys.readouterr().err


def test_the_worst_comes_first_and_the_rest_can_be_left_out(file: Write, capsys: Any) -> None:
    document = component("v1beta1", healthzBindAddress="0.0.0.0:10251", featureGates={"A": True})
    assert run("-f", file(document)) == 0
    kinds = [line.partition(": ")[0] for line in capsys.readouterr().err.splitlines()]
    assert kinds == sorted(
        kinds, key=["cannot be kept", "behaviour differs", "same behaviour"].index
    )
    assert len(set(kinds)) == 3
    assert run("-f", file(document), "--quiet") == 0
    assert "same behaviour" not in capsys.readouterr().err


def test_json(file: Write, capsys: Any) -> None:
    assert run("-f", file(SECOND), "-o", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["profiles"][0]["schedulerName"] == "my-scheduler"


def test_scheduler_profiles_have_the_same_profiles(file: Write, capsys: Any) -> None:
    old = {**THREE, "parallelism": 8}
    assert run("-f", file(old), "--custom-image", "--quiet") == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert run("-f", file(old), "--custom-image", "--quiet", "--profiles") == 0
    printed = capsys.readouterr()
    objects = list(yaml.safe_load_all(printed.out))
    assert "cannot be kept: parallelism: removed; a SchedulerProfile does not" in printed.err
    assert "leaderElection" not in printed.err, "the operator's own business"
    assert [each["kind"] for each in objects] == ["SchedulerProfile"] * 3
    first = {"schedulerName": "default-scheduler"}
    profiles, results = validate_profiles(
        "", objects, first, Target(Gates(Version(1, 35)), stock=False)
    )
    assert list(profiles[1:]) == config["profiles"]
    assert all(result.accepted for result in results)


def test_a_profile_without_a_name_becomes_that_of_all_pods(file: Write, capsys: Any) -> None:
    assert run("-f", file(DEMO), "--profiles", "-o", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["metadata"]["name"] == "default-scheduler"
    assert made["spec"]["plugins"]["score"]["enabled"] == [{"name": "ImageLocality", "weight": 10}]


def test_several_documents(file: Write, capsys: Any) -> None:
    name = file(SECOND, DEPLOYMENT, None, CLASSIC)
    assert run("-f", name) == 0
    printed = capsys.readouterr()
    first, second = yaml.safe_load_all(printed.out)
    assert first["leaderElection"] == {"leaderElect": True}
    assert second["profiles"][0]["plugins"]["score"]["disabled"] == [{"name": "*"}]
    assert "skipped: document 2, Deployment" in printed.err
    assert "same behaviour: document 3: predicates[0]: " in printed.err
    assert run("-f", name, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "apiVersion": "v1", "kind": "List", "items": [first, second],
    }  # fmt: skip


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(CLASSIC)))
    assert run("-f", "-") == 0
    assert yaml.safe_load(capsys.readouterr().out)["kind"] == "KubeSchedulerConfiguration"


def test_a_policy_in_a_config_map(file: Write, capsys: Any) -> None:
    assert run("-f", file(POLICY_MAP)) == 0
    made = yaml.safe_load(capsys.readouterr().out)
    assert [each["weight"] for each in made["extenders"]] == [2, 2]


def test_a_configuration_in_a_config_map(file: Write, capsys: Any) -> None:
    assert (
        run("-f", file(config_map("my-scheduler-config", "config.yaml", SECOND), DEPLOYMENT)) == 0
    )
    assert yaml.safe_load(capsys.readouterr().out)["profiles"][0]["schedulerName"] == "my-scheduler"


OLD = yaml.safe_dump(component("v1beta3", profiles=[{"schedulerName": "packed"}]))
INSIDE: dict[str, dict[str, Any]] = {
    "AKS": {
        "apiVersion": "aks.azure.com/v1alpha1",
        "kind": "SchedulerConfiguration",
        "metadata": {"name": "upstream"},
        "spec": {"rawConfig": OLD},
    },
    "Secret": {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "packed"},
        "stringData": {"config.yaml": OLD, "token": "not-to-be-shown"},
    },
    "Talos": {"cluster": {"scheduler": {"config": yaml.safe_load(OLD)}}},
    "values": {"replicas": 1, "schedulerConfig": OLD},
}


def deployment(*flags: str, image: str = "registry.k8s.io/kube-scheduler:v1.24.3") -> Any:
    """A Deployment whose container mounts ConfigMap my-config at /config."""
    container = {
        "name": "scheduler",
        "image": image,
        "command": ["kube-scheduler", *flags],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    volume = {"name": "config", "configMap": {"name": "my-config"}}
    pod = {"serviceAccountName": "mine", "containers": [container], "volumes": [volume]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mine", "namespace": "kube-system"},
        "spec": {"template": {"spec": pod}},
    }


MINE = component("v1beta3", profiles=[{"schedulerName": "mine"}])


def test_the_workload_that_reads_the_result_is_named(file: Write, capsys: Any) -> None:
    maps = config_map("my-config", "my.yaml", MINE)
    maps["data"]["other.yaml"] = json.dumps(SECOND)
    assert run(file(deployment("--config=/config/my.yaml"), maps)) == 0
    output, changes = capsys.readouterr()
    (converted,) = yaml.safe_load_all(output)
    assert converted["profiles"] == [{"schedulerName": "mine"}]
    notes = [line for line in changes.splitlines() if line.startswith(("note: ", "skipped: "))]
    assert notes == [
        "skipped: ConfigMap my-config other.yaml, which no scheduler in these files reads; convert "
        "it alone to get its objects",
        "note: Deployment mine reads ConfigMap my-config my.yaml: replace it there with the "
        "result; use an image of 1.25 or newer, not 1.24",
        "skipped: document 1, Deployment mine",
    ]


def test_a_workload_without_its_config_map_names_what_is_missing(file: Write, capsys: Any) -> None:
    assert run(file(deployment("--config=/config/my.yaml"))) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: Deployment mine reads my.yaml of ConfigMap my-config, which is not in these files; "
        "name its file as well"
    )


@pytest.mark.parametrize(
    "flags", [("--policy-configmap=my-config",), ("--policy-config-file=/config/policy.cfg",)]
)
def test_the_flags_beside_a_policy_are_in_the_result(
    flags: tuple[str, ...], file: Write, capsys: Any
) -> None:
    more = ("--scheduler-name=mine", "--lock-object-name=mine", "--kube-api-qps=80", "--v=2")
    scheduler = deployment(*flags, *more, image="k8s.gcr.io/kube-scheduler:v1.18.3")
    policy_map = config_map("my-config", "policy.cfg", CLASSIC)
    assert run(file(policy_map, scheduler)) == 0
    output, changes = capsys.readouterr()
    made = yaml.safe_load(output)
    assert made["profiles"][0]["schedulerName"] == "mine"
    assert made["leaderElection"] == {"resourceName": "mine"}
    assert made["clientConnection"] == {"qps": 80.0}
    assert "behaviour differs: kind" not in changes
    removed = f"remove {flags[0].partition('=')[0]}, --scheduler-name, --lock-object-name;"
    assert removed in changes

    assert run(file(policy_map)) == 0
    alone = yaml.safe_load(capsys.readouterr().out)
    assert "schedulerName" not in alone["profiles"][0], "no flag is known without the Deployment"


@pytest.mark.parametrize(
    ("flags", "named"),
    [((), "kube-system"), (("--policy-configmap-namespace=other",), "other")],
)
def test_a_policy_is_read_from_the_namespace_of_its_flag(
    flags: tuple[str, ...], named: str, file: Write, capsys: Any
) -> None:
    scheduler = deployment("--policy-configmap=the-policy", "--scheduler-name=mine", *flags)
    for namespace in ("kube-system", "other"):
        policy_map = config_map("the-policy", "policy.cfg", CLASSIC, namespace)
        assert run(file(policy_map, scheduler)) == 0
        profile = yaml.safe_load(capsys.readouterr().out)["profiles"][0]
        assert (profile.get("schedulerName") == "mine") == (namespace == named)


def test_a_flag_beside_a_policy_with_an_invalid_value_is_reported(file: Write, capsys: Any) -> None:
    scheduler = deployment("--policy-configmap=my-config", "--kube-api-burst=many")
    assert run(file(config_map("my-config", "policy.cfg", CLASSIC), scheduler)) == 0
    output, changes = capsys.readouterr()
    assert "clientConnection" not in yaml.safe_load(output)
    assert "cannot be kept: --kube-api-burst has no effect" in changes


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.23.10", 0),
        ("registry.example.com/my-scheduler:v1", 0),
        ("registry.k8s.io/kube-scheduler:v1.24.3", 1),
    ],
)
def test_plugins_of_the_image_that_reads_the_result_are_known(
    image: str, code: int, file: Write, capsys: Any
) -> None:
    lists = {"score": {"enabled": [{"name": "TargetLoadPacking"}]}}
    profile = {"schedulerName": "mine", "plugins": lists}
    maps = config_map("my-config", "my.yaml", component("v1beta3", profiles=[profile]))
    assert run(file(deployment("--config=/config/my.yaml", image=image), maps)) == code
    assert ("no plugin" in capsys.readouterr().err) == bool(code)


def test_the_config_map_of_openshifts_secondary_scheduler_is_converted_for_its_image(
    file: Write, capsys: Any
) -> None:
    image = "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.23.10"
    scheduler = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": "cluster"},
        "spec": {"schedulerConfig": "my-config", "schedulerImage": image},
    }
    lists = {"score": {"enabled": [{"name": "TargetLoadPacking"}]}}
    profile = {"schedulerName": "mine", "plugins": lists}
    old = component("v1beta3", profiles=[profile])
    maps = config_map("my-config", "config.yaml", old, "openshift-secondary-scheduler-operator")
    assert run(file(scheduler, maps)) == 0
    assert "note: SecondaryScheduler cluster reads ConfigMap my-config" in capsys.readouterr().err


def test_a_configuration_in_another_form_is_not_skipped_beside_a_config_map(
    file: Write, capsys: Any
) -> None:
    maps = config_map("my-config", "my.yaml", MINE)
    assert run(file(INSIDE["AKS"], maps)) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert "a configuration is in other documents (SchedulerConfiguration upstream in " in errors


@pytest.mark.parametrize("document", INSIDE.values(), ids=list(INSIDE))
def test_the_only_configuration_in_a_file_of_another_product(
    document: Any, file: Write, capsys: Any
) -> None:
    assert main(["convert", "-f", file(document)]) == 0
    output, changes = capsys.readouterr()
    assert yaml.safe_load(output)["profiles"] == [{"schedulerName": "packed"}]
    assert yaml.safe_load(output)["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert changes.startswith("note: from ")
    assert "replace it there" in changes
    assert "not-to-be-shown" not in output + changes


def test_several_configurations_in_files_of_other_products(file: Write, capsys: Any) -> None:
    assert main(["convert", "-f", file(INSIDE["AKS"]), "-f", file(INSIDE["Secret"])]) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert "2 configurations are in other documents (SchedulerConfiguration upstream in " in errors


def test_a_broken_configuration_in_a_file_of_another_product(file: Write, capsys: Any) -> None:
    broken = {**INSIDE["AKS"], "spec": {"rawConfig": OLD + "profiles: []\n"}}
    assert main(["convert", "-f", file(broken)]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert "profiles" in errors


def test_policy_in_a_config_map_of_the_same_file(file: Write, capsys: Any) -> None:
    assert run("-f", file(POLICY_MAP, AGENT_SCHEDULER)) == 0
    (made,) = yaml.safe_load_all(capsys.readouterr().out)
    assert len(made["extenders"]) == 2
    assert made["leaderElection"]["resourceName"] == "my-scheduler"


@pytest.mark.parametrize("given", [AGENTS, POLICY_MAP])
def test_policy_from_the_flag(file: Write, capsys: Any, given: Any) -> None:
    assert run("-f", file(AGENT_SCHEDULER), "--policy", file(given)) == 0
    assert len(yaml.safe_load(capsys.readouterr().out)["extenders"]) == 2


def test_missing_policy_is_requested(file: Write, capsys: Any) -> None:
    assert run("-f", file(AGENT_SCHEDULER, config_map("other", "policy.cfg", AGENTS))) == 1
    printed = capsys.readouterr()
    assert "ConfigMap my-scheduler-policy in kube-system; pass it as well" in printed.err
    assert "use --policy" in printed.err
    assert len(list(yaml.safe_load_all(printed.out))) == 1  # what could be converted


def test_plugins_of_another_image(file: Write, capsys: Any) -> None:
    name = file(THREE)
    assert run("-f", name) == 1
    printed = capsys.readouterr()
    assert "error: the scheduler would not start: profiles[0].plugins.score" in printed.err
    assert "MyCustomPluginA" in printed.out
    assert "or use --custom-image" in printed.err
    assert run("-f", name, "--custom-image") == 0


def test_the_version_decides_what_is_needed(file: Write, capsys: Any) -> None:
    for version, count in (("1.33", 0), ("v1.34.2", 1), ("1.36", 2)):
        assert run("-f", file(DEMO), "--kubernetes-version", version) == 0
        plugins = yaml.safe_load(capsys.readouterr().out)["profiles"][0]["plugins"]
        names = {each["name"] for each in plugins.get("multiPoint", {}).get("disabled", ())}
        assert len(names & {"DynamicResources", "NodeDeclaredFeatures"}) == count


def test_a_newer_version_is_converted_for_by_the_rules_of_the_newest_one(
    file: Write, capsys: Any
) -> None:
    newest = NEWEST.short
    assert run("-f", file(DEMO), "--kubernetes-version", newest) == 0
    expected = capsys.readouterr().out
    assert run("-f", file(DEMO), "--kubernetes-version", "1.99") == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    assert "note: Kubernetes 1.99 is newer than the versions on record" in printed.err


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--kubernetes-version", "1.20"), "1.20 is not supported; use 1.29 or newer"),
        (("--kubernetes-version", "newest"), "'newest' is not a Kubernetes version"),
        (("--policy", "/nowhere"), "/nowhere: No such file or directory"),
    ],
)
def test_wrong_usage(file: Write, capsys: Any, arguments: tuple[str, ...], output: str) -> None:
    assert run("-f", file(DEMO), *arguments) == 2
    printed = capsys.readouterr()
    assert (printed.out, output in printed.err) == ("", True)


def test_what_cannot_be_read(file: Write, tmp_path: Path, capsys: Any) -> None:
    assert run("-f", "/nowhere") == 2
    assert capsys.readouterr().err == "error: /nowhere: No such file or directory\n"
    broken = tmp_path / "broken"
    broken.write_text("a: [", encoding="utf-8")
    assert run("-f", str(broken)) == 1
    assert "broken:1:5: expected a value" in capsys.readouterr().err
    assert run("-f", file(DEMO), "--policy", file(DEMO)) == 2
    assert "does not contain a Policy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("documents", "output"),
    [
        ((), "the file contains neither a Policy nor a KubeSchedulerConfiguration"),
        ((DEPLOYMENT,), "the file contains neither a Policy nor a KubeSchedulerConfiguration"),
        (({"a": 1},), "error: kind: the document has no apiVersion and kind; pass a"),
        ((["a"],), "error: must be an object; pass a"),
        ((component("v2"),), 'apiVersion: kubescheduler.config.k8s.io has no version "v2"'),
        ((config_map("x", "policy.cfg", []),), "ConfigMap x: data.policy.cfg has no Policy"),
        (({"kind": "ConfigMap", "metadata": 1, "data": []},), "contains neither a Policy nor"),
    ],
)
def test_what_cannot_be_converted(
    file: Write, capsys: Any, documents: tuple[Any, ...], output: str
) -> None:
    assert run("-f", file(*documents)) == 1
    printed = capsys.readouterr()
    assert (printed.out, output in printed.err) == ("", True)


def test_it_starts_without_what_it_does_not_need() -> None:
    program = (
        "import io, sys\n"
        "from kube_scheduler_operator.__main__ import main\n"
        'sys.stdin = io.StringIO(\'{"kind": "Policy"}\')\n'
        "code = main(['convert', '-f', '-', '--quiet'])\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {"aiohttp", "asyncio", "jinja2", "jsonmerge", "jsonschema", "kopf", "kubernetes"}
    assert set(done.stderr.split()) & heavy == set()


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
V1 = HEAD.replace("v1beta3", "v1")


@pytest.fixture
def text(tmp_path: Path) -> Callable[[str], str]:
    def write(content: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("head", [HEAD, V1], ids=["v1beta3", "v1"])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("enableProfiling: y\t# after a tab", {"enableProfiling": True}),
        ("parallelism: 010", {"parallelism": 8}),
        ("parallelism: 1e1", {"parallelism": 10}),
        (
            "profiles: [{schedulerName: 2024-01-01}]",
            {"profiles": [{"schedulerName": "2024-01-01"}]},
        ),
        ("profiles: [{schedulerName: 1:30}]", {"profiles": [{"schedulerName": "1:30"}]}),
        ("profiles: [{schedulerName: 'n'}]", {"profiles": [{"schedulerName": "n"}]}),
        ("profiles: [{schedulerName: '1e1'}]", {"profiles": [{"schedulerName": "1e1"}]}),
    ],
)
def test_files_are_read_and_written_with_kube_schedulers_rules(
    text: Any, capsys: Any, head: str, fields: str, expected: Any
) -> None:
    assert run("-f", text(head + fields), "--quiet") == 0
    ((document,), error) = read(capsys.readouterr().out)
    assert error is None
    assert {key: document.value[key] for key in expected} == expected


DUPLICATE = f"{HEAD}profiles:\n- plugins: {{score: {{}}}}\n  plugins: {{filter: {{}}}}\n"
IN_A_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  config.yaml: |\n"
    + "".join(f"    {line}\n" for line in DUPLICATE.splitlines())
    + "  README: 'a: 1, b: {'\n"
)


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (DUPLICATE, 'config.yaml:5:3: duplicate key "plugins", first in line 4; remove one'),
        (IN_A_MAP, 'ConfigMap c config.yaml:5:3: duplicate key "plugins", first in line 4'),
        (IN_A_MAP.replace("plugins: {filter: {}}", "plugins: {"), "ConfigMap c config.yaml:"),
        (f"{HEAD}profiles: &a\n- pluginConfig: *a\n", "an anchor contains itself"),
        (f"{HEAD}x: {'[' * 200}", "nested more than 100 levels deep"),
    ],
)
def test_what_kube_scheduler_would_not_read_is_an_error_with_its_position(
    text: Any, capsys: Any, content: str, output: str
) -> None:
    name = text(content)
    assert run("-f", name) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert output in printed.err
    assert all(line.startswith("error: ") for line in printed.err.splitlines())


@pytest.mark.parametrize("flags", [(), ("--profiles",), ("--to", "second")], ids=str)
@pytest.mark.parametrize("version", ["v1alpha2", "v1beta3", "v1"])
@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"profiles": {"pluginConfig": []}}, "error: profiles: must be a list, not an object"),
        ({"profiles": ["a"]}, "error: profiles[0]: must be an object, not a string"),
        ({"profiles": [{"plugins": []}]}, "profiles[0].plugins: must be an object"),
        (
            {
                "profiles": [
                    {"plugins": {"score": {"enabled": [{"name": "Dynamic", "weight": "x"}]}}}
                ]
            },
            "profiles[0].plugins.score.enabled[0].weight: must be an integer",
        ),
        ({"extenders": {}}, "error: extenders: must be a list, not an object"),
        ({"extenders": [1]}, "error: extenders[0]: must be an object, not a number"),
        ({"leaderElection": []}, "error: leaderElection: must be an object, not a list"),
    ],
)
def test_wrong_types_are_reported_with_their_field(
    file: Write, capsys: Any, flags: Any, version: str, fields: Any, output: str
) -> None:
    assert run("-f", file(component(version, **fields)), *flags) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert output in printed.err


def test_other_objects_may_have_any_shape(file: Write, capsys: Any) -> None:
    pod = {"spec": {"template": {"spec": {"containers": {"env": 1}}}}}
    other = {"spec": {"containers": [1, {"env": "x", "ports": [1]}, {"env": [{"name": []}]}]}}
    name = file(POLICY_MAP, AGENT_SCHEDULER, {**DEPLOYMENT, **pod}, {**DEPLOYMENT, **other})
    assert run("-f", name, "--quiet") == 0


CALLED = component(
    "v1beta3",
    parallelism=4,
    profiles=[{"schedulerName": "batch"}],
    extenders=[{"urlPrefix": "http://gpu.example/x", "filterVerb": "f"}],
)


@pytest.mark.parametrize("flags", [("--profiles",), ("--to", "control-plane")], ids=str)
def test_extenders_of_the_control_plane_become_objects(
    file: Write, capsys: Any, flags: tuple[str, ...]
) -> None:
    assert run("-f", file(CALLED), *flags) == 0
    printed = capsys.readouterr()
    profile, extender = yaml.safe_load_all(printed.out)
    assert (profile["kind"], profile["metadata"]["name"]) == ("SchedulerProfile", "batch")
    assert (extender["kind"], extender["spec"]["url"]) == (
        "SchedulerExtender", "http://gpu.example/x",
    )  # fmt: skip
    assert "extenders[0]: converted to SchedulerExtender gpu" in printed.err
    assert "cannot be kept: parallelism: removed" in printed.err
    assert "cannot be kept: extenders" not in printed.err


def test_extenders_beside_crane_become_objects(file: Write, capsys: Any) -> None:
    lists = {"score": {"enabled": [{"name": "Dynamic"}]}}
    crane = {**CALLED, "profiles": [{"schedulerName": "batch", "plugins": lists}]}
    policy = {
        "apiVersion": "scheduler.policy.crane.io/v1alpha1",
        "kind": "DynamicSchedulerPolicy",
        "spec": {},
    }
    assert run("-f", file(crane, policy)) == 0
    printed = capsys.readouterr()
    kinds = [each["kind"] for each in yaml.safe_load_all(printed.out)]
    assert kinds.count("SchedulerExtender") == 2
    assert "cannot be kept: extenders" not in printed.err


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (CALLED, "batch"),
        (DEMO, "my-scheduler"),
        (CLASSIC, "my-scheduler"),
        (component("v1"), "my-scheduler"),
    ],
)
def test_any_configuration_becomes_a_second_scheduler(
    file: Write, capsys: Any, document: Any, name: str
) -> None:
    assert run("-f", file(document), "--to", "second", "--namespace", "there") == 0
    scheduler, *others = yaml.safe_load_all(capsys.readouterr().out)
    assert (scheduler["kind"], scheduler["metadata"]["name"]) == ("SecondaryScheduler", name)
    assert scheduler["spec"]["namespace"] == "there"
    assert "extenders" not in scheduler["spec"].get("config", {})
    assert {each["spec"]["scheduler"] for each in others} <= {name}
    assert len(others) == len(document.get("extenders", ()))


def test_metadata_of_another_type_is_reported(file: Write, capsys: Any) -> None:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert run("-f", file({**kind, "metadata": "x"})) == 1
    assert 'has no field "metadata"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("documents", "flags", "code", "output"),
    [
        ((DEMO,), ("--profiles", "--to", "second"), 2, "use one of them"),
        ((DEMO,), ("--profiles", "--name", "a"), 2, "use it with --to second"),
        ((DEMO,), ("--to", "second", "--name", "A_b"), 1, '"A_b" is not a valid name'),
        ((DEMO, DEMO), ("--to", "second"), 1, 'two documents become SecondaryScheduler "my-sch'),
        ((DEMO,), ("--name", "a"), 0, "note: --name has no effect"),
        ((DEMO,), ("--prometheus", "http://p"), 0, "note: --prometheus has no effect"),
    ],
)
def test_flags_are_used_or_reported(
    file: Write, capsys: Any, documents: Any, flags: Any, code: int, output: str
) -> None:
    assert run("-f", file(*documents), *flags) == code
    assert output in capsys.readouterr().err
