"""What the papers are compared with, each a `Plan` like the rest."""

__all__: list[str] = []
