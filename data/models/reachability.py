"""Whether the hub can be reached from here, asked shortly and without naming anything."""

import os

_HUB = "https://huggingface.co"
_LIMIT_S = 3.0


class HubReachability:
    """Implements `ModelHub`. An offline setting of the hub's own client counts as no answer."""

    def __init__(self, url: str | None = None, *, limit_s: float = _LIMIT_S) -> None:
        self._url = url
        self._limit_s = limit_s

    async def answers(self) -> bool:
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
            return False
        import httpx  # not for every command that could ask

        url = self._url or os.environ.get("HF_ENDPOINT") or _HUB
        try:
            async with httpx.AsyncClient(timeout=self._limit_s, follow_redirects=False) as client:
                answer = await client.head(url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            return False
        return answer.status_code < 400
