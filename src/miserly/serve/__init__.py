"""A plan behind HTTP: `create_app` makes an ASGI application, `serve` runs it. It needs the extra `serve`."""

from miserly.serve.app import create_app
from miserly.serve.run import serve

__all__ = ["create_app", "serve"]
