"""A host that dies at a commit: by SIGKILL right before or right after the n-th one.

Nothing of the host runs between the signal and the end of the process, as when the power fails or
the browser kills it; what LMDB does within a commit is met by kills at random moments.
"""

from __future__ import annotations

from typing import Literal

from tests.harness import HostGoneError
from tests.harness.process import BARE_ENVIRONMENT
from tests.harness.sidekeep_host import INTERPRETER, ORIGIN, Sandbox, SidekeepHost

Moment = Literal["before", "after"]

_DYING = """
import os, signal
from sidekeep import execution
from sidekeep.store import bell, transaction

execution.ROWS_AT_ONCE = 1  # so that there is a commit between any two rows

left = int(os.environ["DIE_AT"])
moment = os.environ["DIE_MOMENT"]
committing = False

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def finish(self, original=transaction.Transaction.finish):
    global left, committing
    original(self)
    left -= 1
    if left == 0 and moment == "before":
        die()
    committing = True

def heard(self, original=bell.Bell.heard):  # asked before a write begins and after its commit
    global committing
    if committing and left <= 0:
        die()
    committing = False
    return original(self)

transaction.Transaction.finish = finish
bell.Bell.heard = heard
"""


def dying_host(sandbox: Sandbox, commit: int, moment: Moment) -> SidekeepHost:
    """Return a host that dies at its ``commit``-th commit (from 1). Use it with ``async with``."""
    start = (sandbox.folder / "start.py").read_text(encoding="utf-8")
    imports, end = start.split("from sidekeep", 1)
    script = sandbox.folder / "dying.py"
    script.write_text(f"{imports}{_DYING}\nfrom sidekeep{end}", encoding="utf-8")
    command = [INTERPRETER, *sandbox.interpreter_flags, str(script), str(sandbox.config)]
    environment = {**BARE_ENVIRONMENT, "DIE_AT": str(commit), "DIE_MOMENT": moment}
    return SidekeepHost(command, arguments=(ORIGIN,), environment=environment)


async def dies_at(sandbox: Sandbox, commit: int, moment: Moment, method: str) -> bool:
    """Call a method without parameters on a host that is to die; whether it did."""
    host = await dying_host(sandbox, commit, moment).__aenter__()
    try:
        await host.hello()
        await host.call(method, {})
    except HostGoneError:
        return True
    finally:
        outcome = await host.close()
    assert outcome.signal is None
    return False
