"""A plan behind HTTP: `create_app` makes an ASGI application, `serve` runs it. It needs the extra `serve`."""

from miserly.serve._app import create_app
from miserly.serve._run import serve

__all__ = ["create_app", "serve"]
