"""What is sent to a model: requests made of the messages of a conversation.

Rules of this package:

* Nothing here reads or writes the store. Messages come in, requests go out; pictures are referred
  to, and read only when a request is sent.
* Nothing stored is made smaller. What makes a request smaller works on copies, and depends on
  nothing but the messages and the settings: the same conversation gives the same bytes, and so a
  provider's cache of prefixes holds from turn to turn.
* Characters are UTF-16 units, as JavaScript counts them.

``plan`` decides what goes into a request, ``shapes`` writes it in the form that a server expects;
the other modules know one step each. Source of the rules: docs/protocol.md, "Attachments and
turns", which settles the seed storage model's "Redução de contexto no lado da requisição".
"""
