"""Routes for the page in a browser, and its login: a link's code is exchanged for a cookie that no script can read.

The files contain no data, and need no login. They may only load from here (Content-Security-Policy), run no inline
scripts, and be shown in no frame.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from assistant.core.errors import UsageError
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.web.errors import error_responses
from assistant.web.guard import cookie_name, cookie_secret
from assistant.web.page_files import PageFile, load_page_files
from assistant.web.routers import api_router
from assistant.web.schemas_chat import Answer

# Browsers keep no cookie longer; the login itself ends after 90 days without use.
_COOKIE_SECONDS = 400 * 24 * 3600
_FOR_EVER = "public, max-age=31536000, immutable"
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; style-src 'self'; script-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "Vary": "Accept-Encoding",
}


class LoggedIn(Answer):
    """The browser is logged in (`logged_in`), or no longer is."""

    logged_in: bool


def page_routes(browsers: BrowserSessions) -> list[BaseRoute]:
    """The page's own files, which need no login, and logging a browser in and out."""
    routes = api_router("")

    @routes.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return _answer(request, load_page_files().index, "no-cache")

    @routes.get("/worker.js", include_in_schema=False)
    async def worker(request: Request) -> Response:
        return _answer(request, load_page_files().worker, "no-cache")

    @routes.get("/page/{version}/{name:path}", include_in_schema=False)
    async def page_file(request: Request, version: str, name: Annotated[str, Path()]) -> Response:
        loaded = load_page_files()
        if version != loaded.version or name not in loaded.files:
            raise HTTPException(404, "The page has no such file. Load it again.")
        return _answer(request, loaded.files[name], _FOR_EVER)

    _add_login_routes(routes, browsers)
    return routes.routes


def _add_login_routes(routes: APIRouter, browsers: BrowserSessions) -> None:
    @routes.post("/v1/login", tags=["page"], responses=error_responses(), summary="Log this browser in")
    async def login(
        request: Request,
        authorization: Annotated[str, Header(description="`Login CODE`, with a link's code.", max_length=1000)] = "",
        user_agent: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        """With the code of a link (`assistant open`), which is used up. Sets a cookie for the page alone."""
        scheme, _, code = authorization.partition(" ")
        try:
            secret = browsers.log_in(code.strip() if scheme.lower() == "login" else "", user_agent)
        except UsageError as error:
            raise HTTPException(401, str(error)) from None
        answer = JSONResponse(LoggedIn(logged_in=True).model_dump())
        answer.set_cookie(
            cookie_name(request.scope),
            secret,
            max_age=_COOKIE_SECONDS,
            path="/",
            secure=_is_encrypted(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    @routes.post("/v1/logout", tags=["page"], responses=error_responses(), summary="Log this browser out")
    async def logout(request: Request) -> Response:
        browsers.revoke_secret(cookie_secret(request.scope))
        answer = JSONResponse(LoggedIn(logged_in=False).model_dump())
        answer.delete_cookie(cookie_name(request.scope), path="/", httponly=True, samesite="strict")
        return answer


def _is_encrypted(request: Request) -> bool:
    """Return whether the connection is encrypted, possibly by a proxy: the browser says so."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _answer(request: Request, file: PageFile, cache: str) -> Response:
    headers = {**_PAGE_HEADERS, "Cache-Control": cache, "ETag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
