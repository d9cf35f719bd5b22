"""Files in other languages than YAML are named, instead of a syntax error in a right place."""

from __future__ import annotations

import bz2
import gzip

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OPTIONS = CheckOptions(Gates(Version(1, 35)))
TERRAFORM = f"""# the scheduler
resource "kubernetes_config_map" "scheduler" {{
  data = {{
    "config.yaml" = <<EOT
{CONFIG}EOT
  }}
}}
"""


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (gzip.compress(CONFIG.encode(), mtime=0), 1, "compressed with gzip"),
        (bz2.compress(CONFIG.encode()), 1, "compressed with bzip2"),
        ("<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n", 1, "HTML"),
        ('<?xml version="1.0"?>\n<a/>\n', 1, "HTML or XML"),
        (TERRAFORM, 2, "Terraform"),
        (f"#!/bin/sh\ncat > /etc/s.yaml << 'EOF'\n{CONFIG}EOF\n", 2, "a here-document"),
        (f"sudo tee /etc/s.yaml <<-EOF\n{CONFIG}EOF\n", 1, "a here-document"),
        ('apiVersion = "kubescheduler.config.k8s.io/v1"\nkind = "x"\n', 1, "TOML"),
        (
            "--- a/s.yaml\n+++ b/s.yaml\n@@ -1 +1 @@\n-parallelism: 1\n+parallelism: 2\n",
            3,
            "a diff",
        ),
    ],
)
def test_a_file_in_another_language_is_named(content: str | bytes, line: int, what: str) -> None:
    (found,) = validate([("f", content)], OPTIONS).findings
    assert (found.reason, found.position.line, found.severity) == ("Syntax", line, "error")
    assert what in found.message
    assert found.fix


@pytest.mark.parametrize(
    "content",
    [
        f"{CONFIG}profiles: [{{schedulerName: 'a << b'}}]\n",
        f"# cat <<EOF\n{CONFIG}",
        f"{CONFIG}clientConnection: {{kubeconfig: /a=b}}\n",
    ],
)
def test_what_is_yaml_is_not_taken_for_another_language(content: str) -> None:
    assert [
        each for each in validate([("f", content)], OPTIONS).findings if each.severity == "error"
    ] == []


@pytest.mark.parametrize(
    ("content", "path", "fix"),
    [
        (CONFIG.replace("kind", "Kind"), "Kind", "rename it to kind"),
        (CONFIG.replace("apiVersion", "apiversion"), "apiversion", "rename it to apiVersion"),
        (CONFIG.replace("apiVersion", "apiVerison"), "apiVerison", "rename it to apiVersion"),
        (f"---{CONFIG}", "---apiVersion", "write --- in a line of its own"),
        (
            "".join(f"+{line}\n" for line in CONFIG.splitlines()),
            "['+kind']",
            "remove the + at the beginning of every line",
        ),
    ],
)
def test_a_type_that_is_written_otherwise_is_found(content: str, path: str, fix: str) -> None:
    (found,) = validate([("f", content)], OPTIONS).findings
    assert (found.reason, found.path, found.fix) == ("UnknownKind", path, fix)


@pytest.mark.parametrize("version", ["v1beta4", "v2", "v1alpha9"])
def test_a_version_that_has_never_been_is_not_called_an_old_one(version: str) -> None:
    (found,) = validate([("f", CONFIG.replace("/v1", f"/{version}"))], OPTIONS).findings
    assert (found.reason, found.fix) == ("UnknownKind", "write kubescheduler.config.k8s.io/v1")
