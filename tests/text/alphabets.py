"""Texts that are hard to cut, to fold and to find, and strategies that draw them."""

from __future__ import annotations

from hypothesis import strategies as st

SAMPLES = (
    "The quick brown fox, STRASSE and Straße, İstanbul and ısı",
    "ﬁne ﬂow, Ångström Å Å, ΌΣΟΣ ᾳ, Ǆungla",
    "我们昨天去了上海，天气很好。ＡＢＣ１２３",
    "昨日は東京でﾊﾟﾝを食べました。ガギグ ｶﾞ",
    "안녕하세요 ㅋㅋㅏ 각 ᄒ",
    "สวัสดีครับ น้ำใจ กำลังดี",
    "नमस्ते क्षत्रिय, বাংলা, தமிழ் க்ஷ",
    "👩‍👩‍👧‍👦 👍🏽 ❤️ 🇩🇪🇫🇷 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🙂‍↔️",
    "e\u0301\u0323 o\u0302\u0301 Q\u0307 \r\n \u200d\u200c \u00ad",
    "שָׁלוֹם العَرَبِيَّة \u0600١٢",
)
ALPHABET = sorted({character for sample in SAMPLES for character in sample})

mixed = st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join)
"""Characters of all the samples in any order, also where they make no sense."""

sensible = st.lists(
    st.one_of(st.sampled_from(SAMPLES), st.text("abcdefghijkl mnop\n", max_size=200)), max_size=8
).map(" ".join)
"""The samples themselves, with plain text between them."""

anything = st.one_of(mixed, sensible, st.text(st.characters(exclude_categories=["Cs"])))
"""Any text that can be encoded."""
