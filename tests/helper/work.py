"""A kind of work that does what the first word of its job says, for the tests of processes."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time

from sidekeep.errors import NotFoundError


def run(job: bytes) -> bytes:
    """Do what the job says; ``%`` separates the word from its argument."""
    word, _, rest = job.partition(b"%")
    match word:
        case b"echo":
            return rest
        case b"digest":
            return hashlib.sha256(rest).digest()
        case b"many":
            return b"x" * int(rest)
        case b"pid":
            return str(os.getpid()).encode()
        case b"nice":
            return str(os.nice(0)).encode()
        case b"sleep":
            time.sleep(float(rest))
        case b"hold":  # the interpreter's lock, in C code, for many minutes
            sum(range(10**12))
        case b"spin":  # on the processor, letting others in
            while True:
                pass
        case b"kill":
            os.kill(os.getpid(), int(rest))
        case b"exit":
            os._exit(int(rest))
        case b"hog":
            return str(len(bytearray(int(rest)))).encode()
        case b"print":
            print("not a frame")  # noqa: T201
            os.write(1, b"not a frame either\n")
        case b"interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGHUP)
        case b"fault":
            raise ZeroDivisionError("a fault of the program")
        case b"refuse":
            raise NotFoundError("There is no such thing.", next="look elsewhere")
        case b"path":
            return repr((sys.executable, sys.path, sys.flags)).encode()
        case _:
            raise AssertionError(word)
    return b"done"
