"""Erasure: words removed from every copy that the home's stores have, and the proof that they are gone."""
