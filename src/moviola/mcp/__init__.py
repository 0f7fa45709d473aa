"""Tools for agents: a library's moments, stills, videos and clips over the Model Context Protocol."""

from moviola.mcp.server import library_server, serve_http, serve_stdio

__all__ = ["library_server", "serve_http", "serve_stdio"]
