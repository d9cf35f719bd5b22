"""The operator's image, built without a container engine, in three layers.

A minimal Debian with Python (by mmdebstrap), the locked dependencies (wheels only, checked against
their hashes), and the project's own wheel. Each layer is named after a hash of what it is made of,
so from build to build only the last one changes, and an unchanged tree builds nothing. The layout
is that of the Containerfile: /usr/local/bin/kube-scheduler-operator on Python 3.11.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import archive, binaries, emulation, images, packages, paths
from cluster.archive import Image, Layer
from cluster.console import SandboxError, run, step, succeeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The operator makes a self-signed serving certificate with openssl when it is given none; numpy is
# C++; crane's timestamps are in the local time of a named zone.
_PACKAGES = "python3,openssl,libstdc++6,tzdata"
SUITE = "bookworm"
"""The Debian that the image is made of."""

_PYTHON = "3.11"  # what the suite has
_LIBRARY = f"usr/local/lib/python{_PYTHON}/dist-packages"
_RECIPE = "4"
"""Changes whenever the way of building does, so that layers made in an older way are not reused."""

_UNWANTED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_UNUSED = "kubernetes/aio"
"""The Kubernetes client once more for asyncio, 65 MB; only its reading of kubeconfigs is used."""

_SOURCES = (
    "operator", "crds", "templates", "bindata", "docs/rules.md", "pyproject.toml", "README.md",
    "LICENSE",
)  # fmt: skip
_HERE = binaries.architecture()
_LOCK = paths.REPOSITORY / "requirements.lock"
_BUILD_LOCK = paths.REPOSITORY / "requirements-build.lock"
_OLD_LAYERS_KEPT = 6
_SCRIPT = """\
#!/usr/bin/python3
import sys
from {module} import {function}
sys.exit({function}())
"""


def build(base_layer: Layer | None = None, architecture: str = _HERE) -> Image:
    """Build what has changed of the image, on the Debian of today or on a given lowest layer.

    Args:
        base_layer: the lowest layer, of the same architecture.
        architecture: `amd64` or `arm64`; this machine's by default.

    Raises:
        SandboxError: The project is not complete, or a tool fails.
    """
    for needed in (_LOCK, paths.REPOSITORY / "pyproject.toml"):
        if not needed.exists():
            raise SandboxError(f"the operator's image needs {needed.name}, which is not there yet")
    packages.ensure(packages.IMAGE_TOOLS)
    with paths.locked(images.folder() / ".operator.lock"):
        first, *others = _recipes(architecture)
        lowest = base_layer or _cached(architecture, *first)
        layers = (lowest, *(_cached(architecture, *recipe) for recipe in others))
    return Image(
        images.OPERATOR,
        layers,
        ("/usr/local/bin/kube-scheduler-operator",),
        user="65532:65532",
        environment={**images.PATH, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"},
        architecture=architecture,
    )


def base(architecture: str = _HERE) -> Layer:
    """The lowest layer, a minimal Debian, built first if it is not there yet."""
    packages.ensure(packages.IMAGE_TOOLS)
    with paths.locked(images.folder() / ".operator.lock"):
        return _cached(architecture, *_recipes(architecture)[0])


def built() -> Image | None:
    """The image if it needs no building; so it can be on a node from the start at no cost."""
    wanted = _recipes(_HERE)
    if all(_target(_HERE, name, parts).exists() for name, parts, _make in wanted):
        return build()
    return None


def _recipes(architecture: str) -> list[tuple[str, list[str | bytes], Callable[[Path], None]]]:
    """The layers, lowest first: name, what it is made of, how."""
    dependencies = partial(_build_dependencies, architecture=architecture)
    return [
        ("base", base_recipe(), partial(debootstrap, architecture=architecture)),
        ("dependencies", [_LOCK.read_bytes(), _UNUSED], dependencies),
        ("application", list(_source_contents()), _build_application),
    ]


def base_recipe() -> list[str | bytes]:
    """What the lowest layer is made of."""
    return [SUITE, _PACKAGES, *_UNWANTED]


def _target(architecture: str, name: str, ingredients: Iterable[str | bytes]) -> Path:
    digest = hashlib.sha256(f"{_RECIPE} {binaries.machine(architecture)}".encode())
    for one in ingredients:
        content = one.encode() if isinstance(one, str) else one
        digest.update(hashlib.sha256(content).digest())
    return images.folder() / f"operator-{name}-{digest.hexdigest()[:12]}.layer"


def _cached(
    architecture: str,
    name: str,
    ingredients: Iterable[str | bytes],
    make: Callable[[Path], None],
) -> Layer:
    """Return a layer from the cache, or make it; of older ones only the last few are kept."""
    target = _target(architecture, name, ingredients)
    folder = target.parent
    if target.exists():
        target.touch()  # another checkout that builds must not remove what this one uses
    else:
        with step(f"operator image: {name} ({architecture})"):
            make(target)
        age = sorted(folder.glob(f"operator-{name}-*.layer"), key=lambda one: one.stat().st_mtime)
        for old in age[:-_OLD_LAYERS_KEPT]:
            old.unlink()
            old.with_name(f"{old.name}.sha256").unlink(missing_ok=True)
    return Layer.of(target)


def _source_contents() -> Iterable[str | bytes]:
    """All that the wheel is made of: names and contents, in a fixed order."""
    for source in _SOURCES:
        top = paths.REPOSITORY / source
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for file in files:
            hidden = any(part == "__pycache__" or part.startswith(".") for part in file.parts)
            if file.is_file() and not hidden:
                yield str(file.relative_to(paths.REPOSITORY))
                yield file.read_bytes()


def debootstrap(target: Path, *sources: str, architecture: str) -> None:
    """Write the lowest layer, from Debian's mirror or from other sources of packages.

    Raises:
        SandboxError: mmdebstrap fails, or this machine cannot run programs of the architecture.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tar")
    excludes = [f"--dpkgopt=path-exclude={pattern}" for pattern in _UNWANTED]
    # What names the source is not part of the image, which has no apt.
    hooks = ['--customize-hook=rm -rf "$1"/etc/apt/sources.list*'] if sources else []
    # "essential" has no apt: nothing is ever installed into a running container.
    with emulation.running(architecture):  # the packages' own scripts configure them
        run("mmdebstrap", "--quiet", "--variant=essential", f"--include={_PACKAGES}",
            "--format=tar", f"--architectures={architecture}",
            *excludes, *hooks, SUITE, temporary, *sources, timeout=1800,
            env={**os.environ, "SOURCE_DATE_EPOCH": "0"})  # fmt: skip
    temporary.rename(target)


def _build_dependencies(target: Path, architecture: str) -> None:
    machine = binaries.machine(architecture)
    abi = f"cp{_PYTHON.replace('.', '')}"
    tags = [f"manylinux2014_{machine}", *(f"manylinux_2_{n}_{machine}" for n in range(36, 16, -1))]
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        run(_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile",
            f"--python-version={_PYTHON}", "--implementation=cp", f"--abi={abi}", "--abi=abi3",
            "--abi=none", *(f"--platform={tag}" for tag in tags), "--platform=any",
            f"--target={site}", "--requirement", _LOCK, timeout=900)  # fmt: skip
        shutil.rmtree(site / "bin", ignore_errors=True)  # with this machine's Python in it
        shutil.rmtree(site / _UNUSED)
        _compile(site)
        archive.pack_layer(target, {_LIBRARY: site})


def _build_application(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site, wheels, programs = (Path(folder, name) for name in ("site", "wheels", "bin"))
        _build_wheel(wheels)
        run(_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-compile", "--no-index", f"--target={site}",
            *wheels.glob("*.whl"))  # fmt: skip
        shutil.rmtree(site / "bin", ignore_errors=True)
        _compile(site)
        programs.mkdir()
        files = {_LIBRARY: site}
        for name, entry in _scripts().items():
            module, _, function = entry.partition(":")
            program = programs / name
            program.write_text(_SCRIPT.format(module=module, function=function))
            program.chmod(0o755)
            files[f"usr/local/bin/{name}"] = program
        archive.pack_layer(target, files)


def _scripts() -> dict[str, str]:
    project = tomllib.loads((paths.REPOSITORY / "pyproject.toml").read_text())["project"]
    scripts: dict[str, str] = project["scripts"]
    return scripts


def _build_wheel(folder: Path) -> None:
    """Build the project's wheel; without the development environment, pip fetches the builder."""
    python, environment = _python(), dict(os.environ)
    with tempfile.TemporaryDirectory() as builder:
        if not succeeds(python, "-c", "import hatchling"):
            run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                "--no-deps", "--require-hashes", "--only-binary=:all:", f"--target={builder}",
                "--requirement", _BUILD_LOCK, timeout=300)  # fmt: skip
            environment["PYTHONPATH"] = builder
        run(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder,
            cwd=paths.REPOSITORY, env=environment)  # fmt: skip


def _python() -> Path:
    """A Python that has pip: the development environment's, or the one that runs this."""
    for python in (paths.REPOSITORY / ".venv/bin/python", Path(sys.executable)):
        if python.exists() and succeeds(python, "-c", "import pip"):
            return python
    if not packages.available():
        raise SandboxError("missing: pip; run hack/setup, or install it with your package manager")
    packages.install("python3-pip")
    return Path("/usr/bin/python3")


# Of the client's thousand files, its core imports these models and no API.
_NEVER_IMPORTED = (
    "kubernetes/client/(api/|models/"
    r"(?!(__init__|v1_object_meta|v1_owner_reference|v1_managed_fields_entry)\.py$))"
)


def _compile(site: Path) -> None:
    """Compile to byte code, which start-up time depends on.

    The files do not name a time, only the source's hash (which is not looked at again), so they are
    the same in every build. Only the image's own version of Python can make them; without one on
    this machine the image works, but every start compiles again.
    """
    own = f"{sys.version_info.major}.{sys.version_info.minor}" == _PYTHON
    python = sys.executable if own else shutil.which(f"python{_PYTHON}")
    if python:
        run(python, "-m", "compileall", "-q", "-j0", "--invalidation-mode=unchecked-hash",
            "-x", _NEVER_IMPORTED,
            "-s", site, "-p", f"/{_LIBRARY}", site, timeout=300)  # fmt: skip
