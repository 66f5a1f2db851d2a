"""Plotly figures over results. Nothing is computed here; one module per room, one template for all."""
