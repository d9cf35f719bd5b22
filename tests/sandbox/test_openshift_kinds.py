"""Which of OpenShift's definitions a sandbox has: one of each kind, the default one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster import openshift_kinds
from cluster.console import SandboxError


def write(folder: Path, *names: str) -> None:
    generated = folder / "config/v1/zz_generated.crd-manifests"
    generated.mkdir(parents=True, exist_ok=True)
    for name in names:
        (generated / f"0000_10_config-operator_01_{name}.crd.yaml").touch()


@pytest.mark.parametrize(
    "name", ["schedulers", "schedulers-Default", "schedulers-SelfManagedHA-Default"]
)
def test_the_default_of_several_definitions_is_chosen(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "schedulers-CustomNoUpgrade", "schedulers-OKD", "otherschedulers")
    found = openshift_kinds.definition(tmp_path, "config", "schedulers")
    assert found.name.endswith(f"_{name}.crd.yaml")


@pytest.mark.parametrize("names", [(), ("schedulers", "schedulers-Default")])
def test_a_module_of_another_form_is_an_error(tmp_path: Path, names: tuple[str, ...]) -> None:
    write(tmp_path, "schedulers-OKD", *names)
    with pytest.raises(SandboxError, match="definition of schedulers"):
        openshift_kinds.definition(tmp_path, "config", "schedulers")


def test_the_module_is_the_one_that_the_typed_client_pins() -> None:
    pinned = (Path(openshift_kinds.__file__).parents[1] / "openshift-client/go.mod").read_text()
    assert re.search(rf"{re.escape(openshift_kinds.MODULE)} v\S+$", pinned, re.MULTILINE)
