"""Which messages belong together: a question with its attachments before it and its answer behind.

Source of the rules: the defect list of the reference (D4: never part question and answer, D15:
count what was answered) and its agent builder, which takes the attachments that nobody has
answered. An attachment that came while its question was being answered stands between the two: it
was in no request yet, so it belongs to what comes next.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidekeep.requests.form import Message


def unanswered_failures(messages: Sequence[Message]) -> set[int]:
    """Return the places of the questions that failed and got no answer, nor a part of one."""
    found = set()
    following = ""  # the role of the next message that is no attachment
    for at in range(len(messages) - 1, -1, -1):
        one = messages[at]
        if one.is_question and one.failed and following != "assistant":
            found.add(at)
        if not one.attachment and one.role != "system":
            following = one.role
    return found


def newest(messages: Sequence[Message]) -> list[int]:
    """Return the places of the newest turn: the last message, and what is attached to it.

    Attached are those that nobody has answered: in a row before it, past questions that failed, and
    those that were added while the last answer was being made.
    """
    if not messages:
        return []
    failures = unanswered_failures(messages)
    found = [len(messages) - 1]
    at = len(messages) - 2
    while at >= 0 and (messages[at].attachment or at in failures):
        if messages[at].attachment:
            found.append(at)
        at -= 1
    found += _added_meanwhile(messages, at)
    return found[::-1]


def _added_meanwhile(messages: Sequence[Message], at: int) -> list[int]:
    """Return the attachments between the answer at a place and its question, newest first."""
    between = []
    while at >= 0 and (messages[at].attachment or messages[at].role == "assistant"):
        if messages[at].attachment:
            between.append(at)
        at -= 1
    return between if at >= 0 and messages[at].is_question else []


def turns(messages: Sequence[Message]) -> list[list[int]]:
    """Return the places of all messages by turns, oldest first; the last is the newest turn.

    A turn is the attachments that its question was the first to be asked with, the question, and
    the answers. A question that failed is a turn without its attachments: they wait for the next.
    """
    last = newest(messages)
    failures = unanswered_failures(messages)
    found: list[list[int]] = []
    waiting: list[int] = []
    for at in sorted(set(range(len(messages))).difference(last)):
        if messages[at].attachment:
            waiting.append(at)
        elif at in failures:
            found.append([at])
        elif messages[at].is_question:
            found.append([*waiting, at])
            waiting = []
        elif found:
            found[-1].append(at)
        else:
            found.append([at])
    if waiting:
        found.append(waiting)
    return [*sorted(found), last] if last else []
