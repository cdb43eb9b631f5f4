"""The frames between a host and its helper: jobs one way, answers the other.

Rules of this module: pure functions over bytes, used by both sides; memory grows with what has
arrived. Both ends are the same program on the same machine, so nothing here is a format to keep.

A job is its number (8 bytes, little-endian), its length (8 bytes) and its bytes. An answer has one
more byte between number and length that says what it is. Number 0 is no job's: with ``READY`` the
child says that it has started.
"""

from __future__ import annotations

from typing import NamedTuple

READY = 0
"""Not an answer: the child has imported what it needs and waits for jobs."""
ANSWER = 1
"""The body is what the kind's function returned."""
REFUSED = 2
"""The body is an error in MessagePack, ``[code, message, next]``."""
EXHAUSTED = 3
"""As ``REFUSED``, and the child ends now: it ran out of memory and cannot be trusted any more."""
TOLD = 4
"""Not an answer: how far the job is, in the words of its kind. The job goes on."""

_NUMBER = 8
_LENGTH = 8
JOB_HEADER = _NUMBER + _LENGTH
ANSWER_HEADER = _NUMBER + 1 + _LENGTH


class Answer(NamedTuple):
    """One frame from the child: the job's number, one of the constants above, the bytes."""

    number: int
    what: int
    body: bytes


def job_header(number: int, length: int) -> bytes:
    """Return the bytes that go before a job of ``length`` bytes."""
    return number.to_bytes(_NUMBER, "little") + length.to_bytes(_LENGTH, "little")


def read_job_header(header: bytes) -> tuple[int, int]:
    """Return the number and the length that ``job_header`` wrote."""
    return int.from_bytes(header[:_NUMBER], "little"), int.from_bytes(header[_NUMBER:], "little")


def answer_frame(answer: Answer) -> bytes:
    """Return the bytes of an answer."""
    number, what, body = answer
    return (
        number.to_bytes(_NUMBER, "little")
        + what.to_bytes(1, "little")
        + len(body).to_bytes(_LENGTH, "little")
        + body
    )


class AnswerReader:
    """Cuts the stream of a child into answers."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Answer]:
        """Take the next bytes of the stream and return the answers that are now complete."""
        buffer = self._buffer
        buffer += data
        answers = []
        while len(buffer) >= ANSWER_HEADER:
            end = ANSWER_HEADER + int.from_bytes(buffer[_NUMBER + 1 : ANSWER_HEADER], "little")
            if len(buffer) < end:
                break
            answers.append(
                Answer(
                    int.from_bytes(buffer[:_NUMBER], "little"),
                    buffer[_NUMBER],
                    bytes(buffer[ANSWER_HEADER:end]),
                )
            )
            del buffer[:end]
        return answers
