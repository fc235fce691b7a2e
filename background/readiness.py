"""Tells systemd that the process has begun, so that starting it fails when it could not. See sd_notify(3)."""

import os
import socket


def tell_service_manager() -> None:
    """Does nothing for who was not started by one."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        # A leading @ stands for the zero byte of an abstract address.
        manager.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        manager.sendall(b"READY=1")
