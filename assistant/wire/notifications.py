"""Builds what tells the owner outside: services of `notify.urls`, and browsers that are logged in to the page."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from assistant.core.errors import StoreError
from assistant.notify.browser_push import BrowserGone, PushKey, send_to_browser
from assistant.notify.notifier import Notifier, NotifyConfig
from assistant.notify.services import PushService, browser_services, in_time, read_services, send_push
from assistant.settings.settings import Settings
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.wire.stores import build_lateness_policy
from assistant.wire.turns import Base


def build_notifier(
    base: Base,
    is_looking: Callable[[], bool],
    settings_now: Callable[[], Settings],
    browsers: BrowserSessions,
    key: PushKey,
) -> Notifier:
    """`settings_now` is asked before each notification, and so are the browsers; one that is gone is dropped."""

    def config() -> NotifyConfig:
        notify = settings_now().values.notify
        in_browsers: tuple[PushService, ...] = ()
        # Nobody is told where nobody is let in.
        with contextlib.suppress(StoreError):
            in_browsers = browser_services(browsers.list_push())
        return NotifyConfig((*read_services(notify.urls.get_secret_value()), *in_browsers), notify.text)

    async def send(service: PushService, title: str, body: str) -> None:
        if service.browser is None:
            await send_push(service, title, body)
            return
        try:
            await in_time(service, partial(send_to_browser, service.browser, key, title, body))
        except BrowserGone:
            browsers.drop_push(service.url)
            raise

    return Notifier(base.stores.pushes, config, build_lateness_policy(base.settings), is_looking, base.clock, send)
