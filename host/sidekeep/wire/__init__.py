"""The wire: frames, batches and parts between a browser and the host.

It turns the bytes of standard input into :class:`~sidekeep.wire.messages.Call` objects and results
into frames on standard output. It knows the protocol page (docs/protocol.md) and the error classes,
and nothing of methods or storage. Whoever uses it needs ``channel`` and ``messages`` only.
"""
