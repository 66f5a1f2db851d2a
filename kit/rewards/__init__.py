"""Rewards: pure functions over verdict records and text. Unknown stays unknown, from the judge to the gradient."""
