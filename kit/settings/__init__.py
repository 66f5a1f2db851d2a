"""Settings: parameters of a notebook, profiles."""
