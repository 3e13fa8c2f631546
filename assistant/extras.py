"""Parts of the package that not everybody needs, and what brings them. Pure."""

from __future__ import annotations


def brought_by(extra: str) -> str:
    """What installs one, as the end of a sentence. The package comes from a checkout or a wheel, not from an index."""
    return (
        f"the `{extra}` extra brings it: `pipx install --force './[{extra}]'` or `uv tool install './[{extra}]'` in the "
        "folder of the checkout, with the other extras that you use"
    )
