"""The process that a browser starts.

``main([program, config path, browser arguments…])``. Nothing is imported before the first reply
that it does not need, and standard output is out of everybody's reach before anything can print.
"""

from __future__ import annotations

# The module signal turns all its numbers into enums, which takes 1 ms.
import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

EXIT_FORBIDDEN = 3
EXIT_CONFIG = 4
EXIT_FAULT = 70


def protect_standard_streams() -> tuple[int, int]:
    """Take the pipes to the browser away from descriptors 0 and 1; return them (input, output).

    From then on descriptor 1 is standard error, so that a stray ``print``, even of a C library,
    cannot break the frames, and descriptor 0 is empty.
    """
    try:
        os.fstat(2)
    except OSError:  # the browser closed it: open something harmless in its place
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # Binary mode matters on Windows only, where text mode would change the bytes 0A and 1A.
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(0, os.O_BINARY)
        msvcrt.setmode(1, os.O_BINARY)
    source = os.dup(0)
    target = os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return source, target


def main(argv: list[str]) -> int:
    """Serve one port; return the exit code of ``docs/protocol.md``."""
    gc.disable()  # until the first reply is out: nothing that imports make is garbage
    source, target = protect_standard_streams()
    os.umask(0o077)
    # A browser in a terminal hands Ctrl-C and the hang-up on to its hosts. The end of input follows
    # and ends the host when everything received is done.
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), _signal.SIG_IGN)
    from sidekeep.config import load_host_config
    from sidekeep.connection import Connection
    from sidekeep.errors import ForbiddenError, SidekeepError
    from sidekeep.places import caller
    from sidekeep.wire.channel import Channel

    channel = Channel(source, target)
    code = 0
    try:
        config = load_host_config(argv[1] if len(argv) > 1 else "")
        extension = caller(argv[2:])
        if extension is None or extension not in config.extensions:
            code = EXIT_FORBIDDEN
            channel.forbid = ForbiddenError(
                "This extension may not use the host.",
                next="run install.sh --extension-id with the id of the extension",
            )
            extension = ""
    except SidekeepError as error:
        print(f"sidekeep: {error} {error.next or ''}", file=sys.stderr)  # noqa: T201
        code = EXIT_CONFIG
        channel.forbid = error
        connection = None
    else:
        connection = Connection(channel, config, extension)
    try:
        if connection is None:
            while channel.receive() is not None:
                channel.flush()
        else:
            connection.run()
            connection.close()
    except Exception as error:  # noqa: BLE001 - the last word before the process ends
        import traceback

        traceback.print_exception(error, file=sys.stderr)
        code = EXIT_FAULT
    channel.finished()
    return channel.exit_code or code


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    os._exit(code)
