"""Bytes of others are counted before they are decoded, or a reason is stated here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import kube_scheduler_operator

from .decoding_calls import decoding

PACKAGE: Final = Path(kube_scheduler_operator.__file__).parent

READER: Final = "is the bounded reader"
CALL: Final = "reads a call of the kube-scheduler of a simulation, in the process of the simulation"
BOUNDED: Final = "passes the decoder on to the bounded reader"
OWN: Final = "reads what this process has written itself"
PART: Final = "reads a file of the package"
CONTENT: Final = "reads content that the operator composed, in a ConfigMap of at most 1 MiB"
ROOT: Final = "reads a file on a node that root writes"
COMMAND: Final = "reads a file of the command's user, in a process of its own"

ALLOWED: Final = {
    "operator/admission/pipe.py": {"read_order": "reads what the operator writes to its child"},
    "base/json_text.py": {"parse_json": READER, "read_json": READER},
    "cli/cluster/cache_dump.py": {
        "_entries": "reads one line of a scheduler's log, in a command",
        "_values": "reads one line of a scheduler's log, in a command",
    },
    "cli/cluster/cluster_configuration.py": {"disagreements": CONTENT},
    "cli/cluster/compare.py": {"_document": CONTENT},
    "cli/adoption/installation_objects.py": {"_load": PART},
    "cli/cluster/proposal.py": {"_agent_image": CONTENT},
    "cli/cluster/scheduler_contents.py": {"parse_content": CONTENT},
    "operator/controlplane/rollout/guards.py": {"_desired_pod": OWN},
    "operator/controlplane/target_config_maps.py": {"_static": PART},
    "config/effective/profiles/check.py": {"_judge": OWN},
    "config/effective/secondary/scheduler.py": {"composed": OWN},
    "simulate/simulated_extenders.py": {"_simulated": OWN, "filter_of": OWN},
    "simulate/targets.py": {"RequestTarget.content_in_version": OWN},
    "operator/extenders/agents.py": {"_rendered": OWN},
    "kube/client.py": {"ApiClient.pages": BOUNDED},
    "kube/credentials.py": {"_names_in": COMMAND},
    "kube/oversized.py": {"Notices.event": BOUNDED, "_outline": "decodes one string"},
    "kube/pages.py": {"Pages": BOUNDED},
    "kube/reading.py": {"decoded": BOUNDED},
    "kube/reflector.py": {"Decoding": BOUNDED},
    "operator/loadpolicy/created_objects.py": {"_workloads": OWN},
    "operator/loadpolicy/request.py": {"_read": OWN},
    "base/templates.py": {"_documents": PART, "render_object": PART},
    "config/lint/reports/report_settings.py": {"read_baseline": COMMAND},
    "operator/profiles/aks.py": {"_document": "reads a text hardly longer than the operator's own"},
    "scheduling/annotator/program.py": {"AnnotatorProgram._annotate": BOUNDED},
    "scheduling/annotator/sources/http.py": {"get_json": BOUNDED},
    "scheduling/exporter/saved_windows.py": {"StateFile.load": "reads its own file to a limit"},
    "scheduling/extender/cluster_feed.py": {"ClusterFeed._reflector": BOUNDED},
    "scheduling/extender/decisions.py": {"Decisions.last": OWN, "_explain": OWN, "_rows": OWN},
    "scheduling/extender/node_names.py": {
        "RecentNodeNames.get": "reads a part of a body whose values wire.py has counted",
    },
    "scheduling/extender/wire.py": {
        "ArgsReader._quick": "reads a part of a body whose values were counted",
        "_document": "counts values before",
        "_whole_nodes": "reads a part of a body whose values were counted",
    },
    "node/static_pod/installer.py": {"_read_pod": CONTENT},
    "node/static_pod/layout.py": {"Journal.parse": ROOT},
    "node/static_pod/manifest.py": {"_json_pod": ROOT},
    "node/static_pod/revision_directory.py": {"Hashes.parse": ROOT},
    "base/crd_schema.py": {"openapi_schema": PART},
    "config/language/plugins/known_schedulers.py": {"recorded": PART},
    "config/language/merging/presets.py": {"_load": PART},
    "cli/upgrade/lists.py": {"without_bulk": COMMAND},
    "simulate/api_server.py": {"WorldServer._respond": BOUNDED},
    "simulate/extenders.py": {
        "InProcessExtenders._follow": BOUNDED,
        "InProcessExtenders._event": OWN,
        "InProcessExtenders._with_files": OWN,
    },
    "simulate/launcher_files.py": {"copy_launcher": "reads what its own interpreter writes"},
    "simulate/questions.py": {"read_answer": BOUNDED, "read_request": BOUNDED},
    "simulate/read_files.py": {
        "Repetitions.check": COMMAND,
        "_json_items": COMMAND,
        "_shows_that_a_node_is_named": COMMAND,
        "_yaml": COMMAND,
        "documents": COMMAND,
    },
    "simulate/run.py": {
        "Run._spy": CALL,
        "Run._unless_probed.handle": CALL,
        "Run.schedule": OWN,
    },
    "simulate/store.py": {"WorldStore.delete": OWN, "WorldStore.get": OWN},
    "simulate/world.py": {"Entry.object": OWN},
    "serving/tls_settings.py": {
        "parse_serving_info": "reads a ConfigMap in the operator's namespace, once at the start",
    },
}  # fmt: skip
"""File -> function -> why it may name a decoder."""


def test_every_decoder_is_the_bounded_reader_or_has_a_reason() -> None:
    allowed = {(file, function) for file, each in ALLOWED.items() for function in each}
    found = set(decoding(PACKAGE))
    assert found - allowed == set(), (
        "these decode JSON or YAML: use parse_json or read_json of base/json_text.py, which count "
        "values first, or state here who writes the bytes and what bounds them"
    )
    assert allowed - found == set(), "these decode nothing: remove them here"


@pytest.mark.parametrize(
    "code",
    [
        "import json\ndef f(text):\n    return json.loads(text)",
        "import json as j\ndef f(file):\n    return j.load(file)",
        "import orjson\ndef f(text):\n    return map(orjson.loads, text)",
        "from json import loads\ndef f(text):\n    return loads(text)",
        "from orjson import loads as quick\ndef f(text):\n    return quick(text)",
        "import yaml\ndef f(text):\n    return yaml.safe_load_all(text)",
        "async def f(response):\n    return await response.json()",
        "def f(decoder, text):\n    return decoder.raw_decode(text)",
    ],
)
def test_a_new_decoder_is_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(code)
    assert list(decoding(tmp_path)) == [("module.py", "f")]


def test_other_functions_of_these_modules_are_not_decoders(tmp_path: Path) -> None:
    code = "import json, yaml\ndef f(x):\n    return json.dumps(x), yaml.dump(x), x.loads()"
    (tmp_path / "module.py").write_text(code)
    assert list(decoding(tmp_path)) == []


def reading_whole(package: Path) -> Iterator[str]:
    for path in sorted(package.rglob("*.py")):
        if "await response.read()" in path.read_text():
            yield path.relative_to(package).as_posix()


def test_no_response_is_read_without_a_limit() -> None:
    assert list(reading_whole(PACKAGE)) == []
