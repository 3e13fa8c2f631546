"""Adapters for providers of models, failover between them, metering, and offline mode. The SDKs load what is used of
them: all of Anthropic's takes a second and 50 MB, and most of it is types of interfaces that are never called."""

from assistant.core.imports import defer_reexports

defer_reexports("anthropic")
defer_reexports("openai")
