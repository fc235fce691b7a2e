"""The desktop that the program runs on."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

from domain.errors import InvalidRequest

_LIMIT_S = 5.0


class DesktopFolders:
    """Implements `FolderOpener` with the file manager that the system names."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    async def open_data_folder(self) -> None:
        program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
        seen = sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
        if program is None or not seen:
            raise InvalidRequest(
                f"There is no desktop here to open a folder on. The data folder is {self._data_dir}."
            )
        process = await asyncio.create_subprocess_exec(
            program,
            str(self._data_dir),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_LIMIT_S):
                code = await process.wait()
        except TimeoutError:
            return  # it stays as long as the window does
        if code:
            raise InvalidRequest(
                f"The folder did not open ({Path(program).name} ended with {code}). It is {self._data_dir}."
            )
