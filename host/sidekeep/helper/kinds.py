"""The kinds of slow work, each with the module that does it.

Such a module has ``run(job: bytes) -> bytes``, or ``run_telling(job, tell)`` if it tells how far it
is: with ``tell(bytes)``, seldom. It is imported in the child before the first job; what it cannot
do it says as an answer or as a ``SidekeepError``.
"""

from __future__ import annotations

KINDS = {
    "search": "sidekeep.searching.job",
    "thumbnails": "sidekeep.helper.thumbnails",
    "verify": "sidekeep.helper.verifying",
}
