"""Settings that are wrong within lists and tables, paths that no file can have, and accounts without a home directory:
a few lines say where, and what is allowed."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from assistant.core.errors import SettingsError, StoreError
from assistant.documents.folders import name_folders
from assistant.settings.home import Home, home_from_environment
from assistant.store.backup.folder import BackupFolder
from tests.support.command_line import run_in_process
from tests.support.settings import refused


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


_CALENDAR = '[[calendar.sources]]\nname = "a"\n'
_ACCOUNT = '[[mail_account.further]]\nname = "a"\naddress = "a@b.c"\nimap_host = "h"\nsmtp_host = "h"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[tools]\nfetch_private_hosts = [1]\n",
            "`tools.fetch_private_hosts` is [1]; allowed: a list of names or addresses as in",
        ),
        ("[run_command]\nallow = [1, true]\n", "`run_command.allow` is [1, true]; allowed: a list of commands as in"),
        ("[calendar]\nsources = [1]\n", "entry 1 of `calendar.sources` is wrong; allowed: a list of tables, each with"),
        (_CALENDAR, 'entry 1 of `calendar.sources` has no `kind`; allowed: "caldav", "carddav", "ics" or "vcard".'),
        (
            f'{_CALENDAR}kind = "ics"\nurl = "/a"\n[[calendar.sources]]\nname = "b"\nkind = "x"\nurl = "/a"\n',
            '`kind` of entry 2 of `calendar.sources` is wrong; allowed: "caldav", "carddav", "ics" or "vcard".',
        ),
        (
            f'{_CALENDAR}kind = "ics"\nurl = "ftp://me:hunter2@h/"\n',
            "entry 1 of `calendar.sources` needs as `url` an address that starts with http:// or https:// and has no",
        ),
        (
            f'{_CALENDAR}kind = "ics"\nurl = "/a"\nzz = 1\n',
            "entry 1 of `calendar.sources` has `zz`, which is not a setting; known: name, kind, url, ",
        ),
        ('[mcp.servers.A]\ncommand = "x"\n', "`mcp.servers.A` is wrong; allowed: a table [mcp.servers.NAME] for each"),
        ("[mcp.servers.a]\ncommand = 'x'\nargs = [1]\n", "`mcp.servers.a.args` is wrong; allowed: a list of texts"),
        ("[mcp.servers.a]\ncommand = 'x'\nenv = {K = 4711}\n", "`mcp.servers.a.env` is wrong; allowed: a table of"),
        ("[mcp.servers.a]\nurl = 'ftp://x'\n", "`mcp.servers.a.url` is wrong; allowed: an address that starts with"),
        (f"{_ACCOUNT}imap_port = 0\n", "`imap_port` of entry 1 of `mail_account.further` is wrong; allowed: a whole"),
        (
            f'{_ACCOUNT}imap_tls = "none"\n',
            'entry 1 of `mail_account.further` has imap_tls = "none", which is only for a server on this machine.',
        ),
        (
            '[mail_account]\nimap_tls = "none"\nimap_host = "mail.example.org"\n',
            '[mail_account] has imap_tls = "none", which is only for a server on this machine.',
        ),
    ],
)
def test_what_is_wrong_within_a_list_or_a_table_is_told_with_its_place_and_what_is_allowed(
    home: Home, text: str, told: str
) -> None:
    refusal = refused(home, text)
    assert refusal.startswith(f"{home.config}: {told}")
    assert "Input should" not in refusal
    assert "hunter2" not in refusal
    assert "4711" not in refusal


@pytest.mark.parametrize(
    "text",
    [
        "[turn]\n" + "".join(f"x{number} = 1\n" for number in range(500)),
        "".join(f"[x{number}]\n" for number in range(500)),
        f"[calendar]\nsources = [{'1, ' * 500}]\n",
        f"[turn]\n{'x' * 10_000} = 1\n",
        '[turn]\nmax_steps = "\\u001b\\u202e\\u2028\\u0085"\n',
        f'[{"x" * 10_000}]\na = 1\n[mcp.servers."\\u001b[31m\\n"]\ncommand = "x"\n',
    ],
)
def test_however_much_is_wrong_a_few_lines_tell_of_it(home: Home, text: str) -> None:
    lines = refused(home, text).splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) < 600
    assert all(line.isprintable() for line in lines)


def _nobody(_: int) -> None:
    raise KeyError("no such account")


def test_an_account_without_a_home_directory_is_served_where_a_data_folder_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    with pytest.raises(SettingsError, match="HOME is not set, and this account has no home directory"):
        home_from_environment({})
    assert home.folder_list is None
    for command in ("status", "doctor", "verify"):
        assert "a defect" not in run_in_process(home.path, command).err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("backup.folder", '"a\\u0000b"'),
        ("backup.folder", f'"/{"x" * 300}"'),
        ("web.certificate", '"a\\nb"'),
        ("mail_account.ca_file", '"/a\\u0000"'),
        ("archive.url", '"/a\\u0000"'),
        ("files.folders", '["/a\\u0000"]'),
    ],
)
def test_what_no_file_can_be_called_is_refused_as_a_path(home: Home, key: str, value: str) -> None:
    section, _, name = key.partition(".")
    assert f"{home.config}: `{key}` is " in refused(home, f"[{section}]\n{name} = {value}\n")


def test_a_folder_of_nobody_is_one_that_is_not_there(home: Home) -> None:
    folder = BackupFolder(home.path, "~nobody-at-all/x")
    with pytest.raises(StoreError, match="~nobody-at-all/x"):
        folder.list_backups()
    assert name_folders(["~nobody-at-all/x"]) == {"x": Path("~nobody-at-all/x")}
    for arguments in (("backup", "restore", "~nobody-at-all/x"), ("import", "~nobody-at-all/x"), ("add", "~nobody/x")):
        done = run_in_process(home.path, *arguments)
        assert done.returncode
        assert "a defect" not in done.err
