"""A plan behind HTTP: `create_app` makes an ASGI application, `serve` runs it. It needs the extra `serve`."""

from miserly.serve._app import Application, create_app
from miserly.serve._rollout import Canary, read_canaries
from miserly.serve._run import serve

__all__ = ["Application", "Canary", "create_app", "read_canaries", "serve"]
