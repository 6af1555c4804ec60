"""What differs between Linux, macOS and Windows; names of libraries are in polyop._libraries."""

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


def trim_memory() -> None:
    """Returns freed memory to the system. glibc keeps it, but later allocations do not fit well: after a run of a
    detector it was two thirds of the process's memory."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
