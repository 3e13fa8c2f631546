"""The home directory itself: checks, the workspace, the configuration file, secrets."""
