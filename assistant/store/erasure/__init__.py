"""Erasure: removes text from every copy in the data folder's stores, and proves that it is gone."""
