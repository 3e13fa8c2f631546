"""The stores of the data folder, opened for a command that reads them, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assistant.cli.logging_setup import log_to_file
from assistant.cli.output import print_remark
from assistant.core.calendar import utc_now
from assistant.core.errors import HomeError, NewHome, SettingsError, UsageError
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation
from assistant.service.home_lock import is_home_served, is_listening
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import SettingsLayer, read_file_layer
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.restore import is_restore_interrupted
from assistant.store.calendars import FOLDER as CALENDARS_FOLDER
from assistant.store.home.guard import HOME_MISSING, is_home_missing
from assistant.store.home.inventory import describe_lost_commits, require_stores
from assistant.wire.stores import Stores


@contextmanager
def open_home_stores(settings: Settings, *, reading: bool = True) -> Iterator[Stores]:
    """The stores beside a running daemon; to change them (`reading` False) the caller holds the home's lock. Whoever
    reads where nothing was ever said is told so, and reads empty stores.

    Raises `HomeError` (see `is_new_home`; also where there is nothing to change), `NewerSchema`, `StoreError`."""
    with ExitStack() as stack:
        if not reading:
            require_home(settings)
        elif is_new_home(settings.home):
            empty = stack.enter_context(TemporaryDirectory(prefix="nocturne-"))
            if (calendars := settings.home.path / CALENDARS_FOLDER).is_dir():
                # What was read of calendars is there before anything was said.
                (Path(empty) / CALENDARS_FOLDER).symlink_to(calendars)
            else:
                print_remark(f"{_nothing_yet(settings.home)} {_BEGIN}")
            settings, reading = replace(settings, home=Home(Path(empty))), False
        log_to_file(settings.home.program_log)
        yield stack.enter_context(closing(Stores(settings, utc_now(), reading=reading)))


_BEGIN = "`assistant setup` connects a model, `assistant chat` begins without one."


def _nothing_yet(home: Home) -> str:
    return f"There is nothing in {home.path} yet."


def require_home(settings: Settings) -> None:
    """Raises `NewHome` where nothing was ever said, so that a command which changes a data folder creates none."""
    if is_new_home(settings.home):
        raise NewHome(f"{_nothing_yet(settings.home)} Nothing was changed. {_BEGIN}")


def is_new_home(home: Home) -> bool:
    """Whether nothing was ever said in a data folder. The first to look at one that a kill left is told what it lost.
    Raises `StoreLost` where something was and a database is missing,
    `HomeError` where the whole folder is, or where a restore of it was interrupted."""
    folder = home.path
    database = folder / "script.db"
    if is_restore_interrupted(folder):
        raise HomeError(
            f"A restore of {folder} was interrupted. Nothing is lost; starting the assistant finishes it, and so does "
            "`assistant backup restore` without a name."
        )
    if not is_home_served(folder):
        for remark in describe_lost_commits(folder):
            print_remark(remark)
    require_stores(folder)
    if database.exists():
        return False
    if is_home_missing(folder, home.folder_list):
        raise HomeError(HOME_MISSING.format(home=folder))
    return True


def remark_missing_home(settings: Settings) -> None:
    """Before a data folder is begun: say it where there was one."""
    home = settings.home
    if is_home_missing(home.path, home.folder_list):
        print_remark(
            f"There was a data folder at {home.path}, and it is not there now, so a new one begins. If its disk is not "
            "mounted, stop this first (Ctrl-C, `assistant stop`), mount it, and start again."
        )


def scope_of_session(conversation: Conversation, session: str) -> str:
    """The scope of a session's messages. Raises `UsageError` for a session that does not exist."""
    found = conversation.find_session(session)
    if found is None:
        names = ", ".join(sorted(session_name(info.key) for info in conversation.list_sessions())) or "none yet"
        raise UsageError(f"There is no conversation {session_name(session)!r}. Conversations: {names}.")
    return found.scope


def load_effective_settings(*, read_only: bool = False) -> Settings:
    """Those of the home, else those that its daemon last understood; for a command that is `read_only`, and where no
    daemon answers, those that can be read. Raises `SettingsError` where there are none such, or where something else
    than config.toml is wrong."""
    home = home_from_environment()
    try:
        return load_settings(home)
    except SettingsError as error:
        if is_listening(home.socket):
            settings = _load_with(home, read_file_layer(home.last_valid_config, str(home.config)), error)
            notice = (
                f"{_describe(error)} The running assistant keeps its last valid settings, and so does this command; "
                "`assistant config edit` fixes the file."
            )
        elif read_only:
            settings, notice = load_readable_settings(home, error)
        else:
            raise
    print_remark(notice)
    return settings


def load_readable_settings(home: Home, error: SettingsError) -> tuple[Settings, str]:
    """The settings without those keys of config.toml that were refused with `error`, and what there is to say of it.
    Raises `error` where something else is wrong."""
    origin = str(home.config)
    readable: dict[str, Any] = {}
    settings = _load_with(home, SettingsLayer(origin, {}), error)
    for key, value in read_file_layer(home.config, origin).values.items():
        with suppress(SettingsError):
            settings = _load_with(home, SettingsLayer(origin, {**readable, key: value}), error)
            readable[key] = value
    used = "The other settings are used" if readable else "The default settings are used"
    return settings, f"{_describe(error)} {used}; `assistant config edit` fixes it."


def _load_with(home: Home, config: SettingsLayer, error: SettingsError) -> Settings:
    """With `config` in place of config.toml. Raises `error`."""
    try:
        return load_settings(home, config=config)
    except SettingsError:
        raise error from None


def _describe(error: SettingsError) -> str:
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    return f"{error.problems[0]}{more}"
