"""The machine and its settings: paths, device, progress bars, profiles, config files, notebook parameters."""
