"""The machine and its settings: paths, device, profiles, settings files, pinned downloads, progress bars, Colab."""
