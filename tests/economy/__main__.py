"""`make economy`: what a year of a person's life costs, without a call."""

from __future__ import annotations

from tests.economy.year import main

if __name__ == "__main__":
    main()
