# SPDX-License-Identifier: Apache-2.0
"""What differs between Linux, macOS and Windows; names of libraries are in polyop._base.libraries."""

from __future__ import annotations

import ctypes
import os
import sys


def program_file(name: str) -> str:
    return f"{name}.exe" if sys.platform == "win32" else name


def processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_running(process: int) -> bool:
    """Returns True if a process of this number exists on this machine."""
    if sys.platform == "win32":
        query, still_active = 0x1000, 259
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(kernel.OpenProcess(query, False, process))
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return code.value == still_active
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # another user's
    except (OSError, OverflowError):
        return False
    return True


def try_lock(file: int) -> bool:
    """Locks an open file until it is closed. Returns False if another process or another open file has the lock. A file
    system without locks has none."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def sync_file(path: str) -> None:
    """Waits until the content of a file is on the disk: after a crash of the machine, a renamed file could be empty."""
    file = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)  # Windows requires writing
    try:
        os.fsync(file)
    finally:
        os.close(file)


def trim_memory() -> None:
    """Returns freed memory to the system. glibc keeps it, but later allocations do not fit well: after a run of a
    detector it was two thirds of the process's memory."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
