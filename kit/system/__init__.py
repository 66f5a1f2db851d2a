"""The machine and its settings: paths, device, profiles, settings, strict texts, downloads, progress bars, Colab."""
