"""A private PostgreSQL server, for as long as the tests run."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

_AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def binaries() -> Path | None:
    """Where the newest installed server is, if one is."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class PostgresServer:
    """Listens on a loopback port and in its own folder; without fsync, since nothing of it is kept."""

    def __init__(self) -> None:
        self._databases = 0

    def __enter__(self) -> Self:
        found = binaries()
        assert found is not None
        self._bin = found
        self._folder = Path(tempfile.mkdtemp(prefix="uniun-postgres-"))
        # The server refuses to run as root.
        self._as = _AS_POSTGRES if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(self._folder, "postgres", "postgres")
        self._data = str(self._folder / "data")
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"
        )
        self._port = _free_port()
        self.come_back()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.go_away()
        shutil.rmtree(self._folder)

    def go_away(self) -> None:
        """As if it had crashed."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def come_back(self) -> None:
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=50"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "-l", str(self._folder / "log"), "start")

    def create_database(self) -> str:
        """Returns its URL."""
        self._databases += 1
        name = f"uniun{self._databases}"
        with self._connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/{name}"

    def empty(self, url: str) -> None:
        """Takes all rows out of a database, which is much quicker than another database."""
        with self._connect(url.rpartition("/")[2]) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('alembic_version', 'counter')"
            ).fetchall()
            connection.execute(
                f"TRUNCATE {', '.join(name for (name,) in tables)} RESTART IDENTITY CASCADE".encode()
            )

    def _connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1", port=self._port, user="postgres", dbname=database, autocommit=True
        )

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._bin / program), *arguments]
        # Output to a file: a pipe would stay open as long as the server that pg_ctl starts.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                timeout=120,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
