"""The data folder itself: checks, the workspace, the configuration file, secrets."""
