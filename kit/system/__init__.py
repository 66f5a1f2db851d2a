"""The machine: where files lie, processes, progress bars."""
