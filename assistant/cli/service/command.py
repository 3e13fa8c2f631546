"""`assistant service`: the daemon under a service manager, so that it runs in the background."""

from __future__ import annotations

import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import click

from assistant.cli.lazy import DefaultGroup
from assistant.cli.output import json_result, print_remark, print_text
from assistant.cli.service.install import (
    DEFAULT_SERVICE_NAME,
    Launchd,
    ServiceDefinition,
    ServiceManager,
    ServiceStatus,
    Systemd,
    check_reachable,
    create_system_home,
    define_service,
    describe_where_to_keep,
    find_program,
    install_service,
    launchd_log_path,
    load_system_settings,
    read_service_file,
    remove_service,
    run_subprocess,
    variables_hidden_from_service,
)
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.service.home_lock import is_home_served, lock_holder
from assistant.service.presence import detect_service_manager
from assistant.service.unit_files import was_edited_by_hand
from assistant.settings.settings import load_settings

_NO_MANAGER = (
    "There is no service: neither systemd nor launchd runs this machine. `assistant run` runs the assistant in the "
    "foreground; `assistant service print --systemd` prints a unit for another machine."
)
_HOW_TO_INSTALL = (
    "`assistant service install` installs it: the assistant then runs in the background, and reminders and bridges "
    "work while no terminal is open."
)


@dataclass(frozen=True, slots=True)
class _ServiceOptions:
    """The options of the group."""

    system: bool
    name: str


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """How a service is; `ok` where it runs as it should."""

    ok: bool
    manager: str
    name: str
    file: Path
    installed: bool
    current: bool  # its file is as this version would write it
    running: bool
    process: int | None
    restarts: int
    detail: str
    page: str | None  # where the running assistant serves its page


@click.group(cls=DefaultGroup, default="status")
@click.option("--system", is_flag=True, help="A system unit with its own user (systemd; needs root).")
@click.option("--name", default=DEFAULT_SERVICE_NAME, show_default=True, help="Another name, for a second data folder.")
@click.pass_context
def service(context: click.Context, system: bool, name: str) -> None:
    """Run the assistant as a service: a systemd user unit on Linux, a launchd agent on macOS.

    Without a command it shows the state of the service.

    > assistant service install
    > assistant service status
    > sudo assistant service --system install
    """
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii():
        raise UsageError(f"{name!r} is not a service name: use letters, digits, '-', '_' and '.'. Nothing was done.")
    context.obj = _ServiceOptions(system, name.removesuffix(".service"))


@service.command()
@click.option("--force", is_flag=True, help="Overwrite a manually changed file; a copy is kept.")
@click.option("--no-start", is_flag=True, help="Do not start it now.")
@click.pass_obj
@json_result(ServiceReport)
def install(options: _ServiceOptions, force: bool, no_start: bool) -> ServiceReport:
    """Install, enable and start the service. Safe to repeat: it shows what changes.

    > assistant service install
    """
    placed, manager = _on_this_machine(options)
    if placed.user:
        _prepare_system(placed)
    changed = install_service(placed, manager, force=force)
    for variable in variables_hidden_from_service(load_settings()):
        how = describe_where_to_keep(variable, placed)
        print_remark(f"{variable} is set in this shell only, and the service does not see it: {how}.")
    if isinstance(manager, Systemd) and (hint := manager.hint()):
        print_remark(hint)
    if manager.read_status().running:
        print_remark("It runs." + (" `assistant service restart` applies the changes." if changed else ""))
    elif is_home_served(placed.home.path):
        holder = lock_holder(placed.home.path)
        print_remark(f"Process {holder} runs the assistant now: `assistant stop`, then `assistant service start`.")
    elif not no_start:
        manager.start(placed.file)
        print_remark("It runs. Talk with `assistant chat`; `assistant service status` shows how it is.")
    return _report(placed, manager)


@service.command()
@click.option("--force", is_flag=True, help="Also remove a manually changed file; a copy is kept.")
@click.pass_obj
@json_result(ServiceReport)
def uninstall(options: _ServiceOptions, force: bool) -> ServiceReport:
    """Stop the service and remove its file. Your data stays.

    > assistant service uninstall
    """
    placed, manager = _on_this_machine(options)
    remove_service(placed, manager, force=force)
    return _report(placed, manager)


@service.command()
@click.pass_obj
@json_result(ServiceReport)
def start(options: _ServiceOptions) -> ServiceReport:
    """Start the service; returns when it is ready.

    > assistant service start
    """
    placed, manager = _installed(options)
    manager.start(placed.file)
    print_remark("It runs.")
    return _report(placed, manager)


@service.command()
@click.pass_obj
@json_result(ServiceReport)
def stop(options: _ServiceOptions) -> ServiceReport:
    """Stop the service. Answers under way get `daemon.drain_seconds` to finish.

    > assistant service stop
    """
    placed, manager = _installed(options)
    manager.stop()
    print_remark("It is stopped.")
    return _report(placed, manager)


@service.command()
@click.pass_obj
@json_result(ServiceReport)
def restart(options: _ServiceOptions) -> ServiceReport:
    """Restart the service, for example after an upgrade.

    > assistant service restart
    """
    placed, manager = _installed(options)
    manager.restart(placed.file)
    print_remark("It was restarted.")
    return _report(placed, manager)


@service.command("status")
@click.pass_obj
@json_result(ServiceReport, "Print JSON; `ok` is false when it does not run as it should.", ok=attrgetter("ok"))
def show_status(options: _ServiceOptions) -> ServiceReport:
    """Show the state of the service. Exits with 1 when it is stopped or out of date.

    `assistant status` shows the state of the assistant itself.

    > assistant service status
    """
    placed, manager = _on_this_machine(options)
    report = _report(placed, manager)
    process = f", process {report.process}" if report.process else ""
    if not report.installed:
        print_text(f"The service is not installed. {_HOW_TO_INSTALL}")
        return report
    described = _describe_file(placed, read_service_file(placed.file) or "")
    page = f"\nPage: {report.page}" if report.page else ""
    print_text(f"{placed.name} ({manager.name}): {report.detail}{process}\n{described}{page}")
    return report


@service.command()
@click.option(
    "-n", "--lines", default=100, show_default=True, type=click.IntRange(1), help="How many of the last lines."
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
@click.pass_context
def logs(context: click.Context, lines: int, follow: bool) -> None:
    """Show the log of the service, which has no message text.

    > assistant service logs -n 20
    > assistant service logs --follow
    """
    _, manager = _installed(context.obj)
    context.exit(subprocess.run(manager.logs_command(lines, follow), check=False).returncode)


@service.command("print")
@click.option("--systemd", "kind", flag_value="systemd", help="The systemd unit.")
@click.option("--launchd", "kind", flag_value="launchd", help="The launchd agent.")
@click.pass_obj
def print_(options: _ServiceOptions, kind: str | None) -> None:
    """Print the file that `install` would write, on any machine.

    > assistant service print
    > assistant service --system print --systemd
    """
    print_text(_define(options, kind or detect_service_manager() or "systemd").text.rstrip("\n"))


def _report(placed: ServiceDefinition, manager: ServiceManager) -> ServiceReport:
    current = read_service_file(placed.file)
    status = manager.read_status() if current is not None else ServiceStatus(False, 0, "not installed")
    return ServiceReport(
        ok=status.running and current == placed.text,
        manager=manager.name,
        name=placed.name,
        file=placed.file,
        installed=current is not None,
        current=current == placed.text,
        running=status.running,
        process=status.pid or None,
        restarts=status.restarts,
        detail=status.detail,
        page=_find_page(placed) if status.running else None,
    )


def _find_page(placed: ServiceDefinition) -> str | None:
    from assistant.cli.web import read_web_report  # and all that it looks at

    return (read_web_report(placed.home) or {}).get("address") or None


def _on_this_machine(options: _ServiceOptions) -> tuple[ServiceDefinition, ServiceManager]:
    """The service and its manager. Raises `AssistantError` where none can run it."""
    kind = detect_service_manager()
    if not kind:
        raise AssistantError(_NO_MANAGER)
    placed = _define(options, kind)
    if kind == "launchd":
        return placed, Launchd(placed.name, launchd_log_path(placed.name), run_subprocess)
    return placed, Systemd(placed.name, options.system, run_subprocess)


def _installed(options: _ServiceOptions) -> tuple[ServiceDefinition, ServiceManager]:
    placed, manager = _on_this_machine(options)
    if not placed.file.exists():
        raise AssistantError(f"The service is not installed ({placed.file} is missing). {_HOW_TO_INSTALL}")
    return placed, manager


def _define(options: _ServiceOptions, kind: str) -> ServiceDefinition:
    if kind == "launchd" and options.system:
        raise UsageError("--system is for systemd; launchd runs the agent of a user. Nothing was done.")
    settings = load_system_settings() if options.system else load_settings()
    return define_service(kind, options.name, settings, system=options.system)


def _prepare_system(placed: ServiceDefinition) -> None:
    if os.geteuid() != 0:
        raise AssistantError(
            "A system unit needs root. Nothing was done; run `sudo assistant service --system install`."
        )
    # What the user has to reach to run the program: itself, and the interpreter that it names.
    check_reachable([find_program(), Path(sys.executable)], placed.user)
    create_system_home(placed)


def _describe_file(placed: ServiceDefinition, current: str) -> str:
    if current == placed.text:
        return f"{placed.file}: up to date"
    how = "changed manually" if was_edited_by_hand(current) else "does not match this version and the settings"
    return f"{placed.file}: {how}; `assistant service install` shows the difference"
