"""Parts of the package that not everybody needs, and what brings them. Pure."""

from __future__ import annotations


def brought_by(extra: str) -> str:
    """What installs one, as part of a sentence. The package is on no index: it comes from a checkout, or a wheel."""
    return (
        f"the `{extra}` extra brings it: `pipx install --force './[{extra}]'` or `uv tool install './[{extra}]'`, in "
        "the folder of the checkout, with the other extras that you use"
    )
