"""What may be the host of a URL."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from kube_scheduler_operator.base.hosts import shown_url, url_host


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("fd00::1", "[fd00::1]"),
        ("node-1", "node-1"),
        ("ip-10-0-0-1.eu-west-1.compute.internal", "ip-10-0-0-1.eu-west-1.compute.internal"),
        ("Node-1.Example", "Node-1.Example"),
    ],
)
def test_an_address_or_a_name_is_the_host(address: str, host: str) -> None:
    assert url_host(address) == host
    assert urlsplit(f"https://{host}:10250/stats").port == 10250


@pytest.mark.parametrize(
    "address",
    [
        "", " ", "a b", "10.0.0.1:80", "10.0.0.1/admin", "evil.example/?x=", "evil.example#",
        "user@evil.example", "[::1]", "::1]:80/x?[", "fe80::1%eth0", "fe80::1%/x", "a\n", "\n",
        "1.2.3", "2130706433", "0x7f000001", "010.0.0.1", "a..b", "-a", "a" * 64, "é.example",
        "a." * 127 + "a",
    ],
)  # fmt: skip
def test_other_text_is_not_a_host(address: str) -> None:
    assert url_host(address) == ""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://10.0.0.1:80/", "http://10.0.0.1:80"),
        ("https://user:secret@host/path/?token=secret#secret", "https://host/path"),
        ("http://a@b:secret@[fd00::1]:1", "http://[fd00::1]:1"),
        ("http://[", "(not a URL)"),
        ("http://host/\u202e\x1b[2J", "http://host/\\u202e\\u001b[2J"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str) -> None:
    assert shown_url(url) == shown
