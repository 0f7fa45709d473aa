"""A client of an app in this process, once the app has answered the first query, which it asks itself."""

from __future__ import annotations

import asyncio
from typing import Self

from fastapi import FastAPI
from fastapi.testclient import TestClient

__all__ = ["Awake"]


class Awake(TestClient):
    """``with Awake(create_app(folder)) as client``: no request comes before the app is ready, or beside its
    own first query, so that no answer rests on which of two threads was first.
    """

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app, base_url="http://localhost")
        self._served = app

    def __enter__(self) -> Self:
        super().__enter__()
        assert self.portal is not None
        self.portal.call(asyncio.wait, [self._served.state.service.warming])
        return self
