"""What the server is told from outside."""

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MB = 1_000_000


@dataclass(frozen=True)
class ServerOptions:
    """`host` and `port` are where it listens."""

    host: str
    port: int
    secret: str
    """Lets other processes of this user in at /internal; they read it from a file that nobody else can read."""
    cookie_secret: str
    """Signs what is kept in a browser."""
    state_dir: Path
    """What pages keep on the server."""
    log_file: Path
    names: tuple[str, ...] = ()
    """Further host names under which it may be asked for."""
    token: str | None = None
    """Without it nobody is let in; none on loopback."""
    max_body_bytes: int = 10 * MB
    max_upload_bytes: int = 102 * MB
    """Of files that a page takes, with what the browser puts around them."""
    max_connections: int = 1000

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        host = "127.0.0.1" if self.host in ("", "0.0.0.0", "127.0.0.1", "localhost") else self.host
        if host in ("::", "::1"):
            host = "[::1]"
        elif ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self.port}"

    @property
    def way_in(self) -> str:
        """What a browser opens first; with the token, if there is one, in exchange for a cookie."""
        return self.url if self.token is None else f"{self.url}/?token={self.token}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    return host in LOOPBACK or host.startswith("127.")
