"""Where archives may go, as the settings allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.settings.home import Home
from assistant.settings.settings import describe_settings, load_settings


@pytest.mark.parametrize("url", ["", "s3://bucket/folder", "/mnt/disk/archive", "sftp://me@host/path"])
def test_archives_go_to_an_address_or_a_whole_path(tmp_path: Path, url: str) -> None:
    assert load_settings(Home(tmp_path), {"ASSISTANT_ARCHIVE__URL": url}).values.archive.url == url


@pytest.mark.parametrize("url", ["archive", "./here", "simplecache::s3://bucket/x", "ftp://me:hunter2@host/x"])
def test_archives_go_through_no_cache_to_no_changing_place_and_with_no_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"ASSISTANT_ARCHIVE__URL"):
        load_settings(Home(tmp_path), {"ASSISTANT_ARCHIVE__URL": url})


def test_the_passphrase_is_not_shown(tmp_path: Path) -> None:
    settings = load_settings(Home(tmp_path), {"ASSISTANT_ARCHIVE__KEY": "correct horse battery"})
    assert not [row for row in describe_settings(settings) if "horse" in row.value]
