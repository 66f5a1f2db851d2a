"""The machine: where files lie, its device, processes, progress bars."""
