"""What lies in the file: tables, row formats, and the numbers they are built from.

``docs/format.md`` describes the same for readers of the file. A change here that old files do not
follow raises ``FORMAT`` and needs a migration with a test.

All integers in rows are big-endian, so that LMDB's byte order of keys is their order.
"""

from __future__ import annotations

import struct

FORMAT = 2

# The file holds one tree; the first byte of a key says which table the row belongs to. (Named
# databases of LMDB would need the writer lock just to be opened, and a root page each.)
META = b"m"  # b"store" -> facts that never change; b"head" -> counters of the last commit
DOCUMENTS = b"d"  # document key -> where the value lies and when it changed
RECORDS = b"r"  # record number -> one stored value as a rope
BLOBS = b"b"  # hash of content -> references, length, checksums of the chunks
CHUNKS = b"c"  # hash of content + chunk index -> bytes
ENTRIES = b"e"  # list number + position -> entry id and record number
HOLDERS = b"h"  # hash of a picture + list number -> how often, and the list's key
SESSIONS = b"s"  # session id -> its row in savedSessions, in short
SEARCH = b"t"  # record number -> the folded text of an entry
PREVIEWS = b"n"  # hash of content + longest edge -> thumbnail
TRASH = b"u"  # sequence number of a removal -> what it removed
TURNS = b"q"  # turn id -> what is known of it
JOURNAL = b"j"  # last sequence number of a commit -> what it changed
OPERATIONS = b"o"  # client + last operation number of a frame -> results
CLIENTS = b"p"  # client -> last operation number and time

# A long string leaves a value's text and becomes a blob from this many bytes of escaped text on.
BLOB_FROM = 4096
# A run of text without long strings becomes a blob too, so that rows stay small.
TEXT_RUN_LIMIT = 65_536
# Just under 1 MiB, and five pieces of 196,608 bytes, each of which is 262,144 bytes of base64.
CHUNK = 983_040
BASE64_PIECE = 196_608
TEXT_PIECE = 262_144

# What a blob in a rope stands for.
KIND_FRAGMENT = 0  # JSON text as it is, outside of a string
KIND_STRING = 1  # the escaped text of a string
KIND_BASE64 = 2  # bytes whose base64 form is the text of a string

NUMBER = struct.Struct(">Q")
RECORD_HEADER = struct.Struct(">BBHIIQ")  # version, form, flags, references, crc32, size
DOCUMENT = struct.Struct(">QQQ")  # record number (0: a list), revision, bytes of key and value
BLOB_HEADER = struct.Struct(">IQ")  # references, length; then one crc32 per chunk
CRC = struct.Struct(">I")
CHUNK_KEY_INDEX = struct.Struct(">I")
ENTRY_KEY = struct.Struct(">QQ")  # list number, position
ENTRY = struct.Struct(">QQ")  # entry id, record number
CLIENT = struct.Struct(">Qd")  # last operation number, time (seconds since 1970)

RECORD_VERSION = 1
RECORD_SEARCHED = 1  # flag of a record: there is a row in SEARCH
FORM_TEXT = 0  # the rest of the row is the value's JSON text
FORM_ROPE = 1  # the rest is a msgpack array of texts and blob references

# Keys of chrome.storage may be of any length, those of LMDB hold 1 to 511 bytes. A document's row
# key is the table's byte and the key in UTF-8. A longer one is cut there and gets 0xFF, which
# never stands in UTF-8, and a hash; the whole key then stands in the row.
KEY_DIRECT = 400


HASH_BYTES = 32


def hash_of(*parts: bytes | memoryview) -> bytes:
    """Return the 32-byte BLAKE2b hash of the parts' concatenation, the name of content."""
    try:
        # hashlib would load OpenSSL, which costs 3 ms and 2 MB that nothing else here needs.
        from _blake2 import blake2b  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # a Python built without its own BLAKE2
        from hashlib import blake2b

    digest = blake2b(digest_size=32)
    for part in parts:
        digest.update(part)
    result: bytes = digest.digest()
    return result


def row_key(key: str) -> bytes:
    """Return the row key, without the table's byte, of the document named ``key``."""
    encoded = key.encode()
    if len(encoded) <= KEY_DIRECT:
        return encoded
    return encoded[:KEY_DIRECT] + b"\xff" + hash_of(encoded)


def is_long(row: bytes | memoryview) -> bool:
    """Whether a document's row key stands for a longer key than fits into it."""
    return len(row) > KEY_DIRECT
