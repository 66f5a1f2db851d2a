"""One reader per format: `read(row) -> Parsed`. Which one fits is decided in `kit.data.detect`."""
