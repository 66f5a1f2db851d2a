"""ipywidgets controls over plain functions. Every widget has a static twin that a headless run shows."""
