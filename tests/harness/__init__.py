"""A harness for native-messaging hosts: start one as a browser would, and look closely.

Two layers, of which the first serves any native-messaging host:

* ``NativeHost`` starts a process, speaks frames and raw bytes, watches what comes out, measures
  memory, processor time and the end of the process.
* ``RpcHost`` adds JSON-RPC 2.0 calls, batches and the parts and windows of ``docs/protocol.md``.

Nothing here imports the host under test. See ``README.md`` beside this file for examples.
"""

from .frames import FrameDecoder, FrameError, encode_frame
from .measure import Memory, cpu_seconds, memory
from .messages import Call, RpcError
from .native import HostGoneError, NativeHost, ViolationError
from .parts import PartError, PartJoiner, split_message
from .process import Exit
from .rpc import RpcHost
from .strict_json import StrictJsonError, parse_strict

__all__ = [
    "Call",
    "Exit",
    "FrameDecoder",
    "FrameError",
    "HostGoneError",
    "Memory",
    "NativeHost",
    "PartError",
    "PartJoiner",
    "RpcError",
    "RpcHost",
    "StrictJsonError",
    "ViolationError",
    "cpu_seconds",
    "encode_frame",
    "memory",
    "parse_strict",
    "split_message",
]
