from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from cluster import archive, images
from cluster.archive import Image, Layer


def make_tree(folder: Path) -> Path:
    """Some files, made in an order and with times and modes that differ from call to call."""
    folder.mkdir()
    for name in os.urandom(4).hex():
        (folder / "sub" / name).parent.mkdir(exist_ok=True)
    for name in sorted(["b", "a", "sub/c"], key=lambda _: os.urandom(1)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / "a").chmod(0o700)
    (folder / "b").chmod(0o600)
    (folder / "link").symlink_to("a")
    return folder


def blobs(image: Image, present: tuple[str, ...] = ()) -> dict[str, bytes]:
    output = io.BytesIO()
    image.write(output, present)
    output.seek(0)
    with tarfile.open(fileobj=output) as tar:
        found = {}
        for entry in tar:
            content = tar.extractfile(entry)
            assert content is not None
            found[entry.name] = content.read()
        return found


@pytest.fixture
def image(tmp_path: Path) -> Image:
    layers = tuple(
        archive.pack_layer(tmp_path / f"{name}.layer", {f"opt/{name}": make_tree(tmp_path / name)})
        for name in ("lower", "upper")
    )
    return Image("localhost/x:dev", layers, ("/x", "-v"), user="1:1", environment={"B": "2"})


@pytest.mark.parametrize("arguments", [(), ("pause",)])
def test_the_configuration_has_arguments_only_if_there_are_any(
    image: Image, arguments: tuple[str, ...]
) -> None:
    found = blobs(dataclasses.replace(image, arguments=arguments))
    name = json.loads(found["manifest.json"])[0]["Config"]
    config = json.loads(found[name])["config"]
    assert config.get("Cmd", []) == list(arguments)
    assert ("Cmd" in config) is bool(arguments)


def test_the_same_files_give_the_same_layer(tmp_path: Path) -> None:
    one, two = (
        archive.pack_layer(tmp_path / f"{n}.layer", {"usr/lib/x": make_tree(tmp_path / str(n))})
        for n in (1, 2)
    )
    assert one.digest == two.digest
    assert one.path.read_bytes() == two.path.read_bytes()


def test_a_layer_has_parents_modes_and_links_but_no_times_or_owners(tmp_path: Path) -> None:
    layer = archive.pack_layer(tmp_path / "layer", {"usr/lib/x": make_tree(tmp_path / "tree")})
    with tarfile.open(layer.path) as tar:
        entries = {entry.name: entry for entry in tar}
    assert [*entries][:3] == ["usr", "usr/lib", "usr/lib/x"]
    assert all(entry.mtime == entry.uid == entry.gid == 0 for entry in entries.values())
    assert entries["usr/lib/x/a"].mode == 0o755
    assert entries["usr/lib/x/b"].mode == 0o644
    assert entries["usr/lib/x/link"].linkname == "a"


def test_a_digest_is_of_the_content_and_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "some.layer"
    path.write_bytes(b"x")
    expected = hashlib.sha256(b"x").hexdigest()
    assert Layer.of(path).digest == expected
    assert (tmp_path / "some.layer.sha256").read_text() == expected


def test_every_descriptor_leads_to_its_blob(image: Image) -> None:
    found = blobs(image)

    def follow(descriptor: dict[str, Any]) -> bytes:
        digest = descriptor["digest"].removeprefix("sha256:")
        content = found[f"blobs/sha256/{digest}"]
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == descriptor["size"]
        return content

    (entry,) = json.loads(found["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "localhost/x:dev"
    manifest = json.loads(follow(entry))
    config = json.loads(follow(manifest["config"]))
    layers = [hashlib.sha256(follow(layer)).hexdigest() for layer in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}" for digest in layers]
    assert config["config"]["Entrypoint"] == ["/x", "-v"]
    assert config["config"]["Env"] == ["B=2"]
    (docker,) = json.loads(found["manifest.json"])
    assert docker["RepoTags"] == ["localhost/x:dev"]
    assert all(name in found for name in [docker["Config"], *docker["Layers"]])


def test_layers_that_the_node_has_are_left_out(image: Image) -> None:
    lower, upper = image.layers
    found = blobs(image, (lower.digest,))
    assert f"blobs/sha256/{lower.digest}" not in found
    assert f"blobs/sha256/{upper.digest}" in found
    assert found["index.json"] == blobs(image)["index.json"]


def elf(*kinds: int) -> bytes:
    """A 64-bit ELF file with program headers of these kinds."""
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    return bytes(head) + b"".join(kind.to_bytes(4, "little").ljust(56, b"\0") for kind in kinds)


@pytest.mark.parametrize(
    ("content", "static"), [(elf(1, 4), True), (elf(1, 3), False), (b"#!/bin/sh\n", False)]
)
def test_only_static_binaries_make_an_image(tmp_path: Path, content: bytes, static: bool) -> None:
    (tmp_path / "binary").write_bytes(content)
    assert images.is_static(tmp_path / "binary") is static
