"""What can be read from a raw mail, as plain functions: from byte searches to MIME, HTML and URLs.

Each takes what another has prepared, so that nothing is done twice: the split into header block and body, the MIME
tree, the decoded text. What the mailbox added (the line "From ", delivery marks) is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

FIELD = re.compile(rb"\n([a-z0-9-]+):")
ADDRESS = re.compile(rb"([\w.+=-]+)@([\w.-]+)")
IP = re.compile(rb"\[(\d+)\.\d+\.\d+\.\d+\]")
WORD = re.compile(r"[a-z$!][a-z0-9$!'-]{2,15}")
SUBJECT_WORD = re.compile(r"[a-z0-9$!%]+|\[[\w -]+\]")
URL = re.compile(r"(?:https?|ftp)://[^\s\"'<>)\]]+", re.IGNORECASE)
NUMERIC_HOST = re.compile(r"[\d.]+|0x[0-9a-f]+")
LONGEST_TEXT = 50_000
GRAM_BITS = 16


class Letter(NamedTuple):
    """The two halves of a mail, and the header block in lower case."""

    head: bytes
    low: bytes
    body: bytes


class Sender(NamedTuple):
    """Who sent it: name, address, domain in lower case (empty where there is none)."""

    name: bytes
    address: bytes
    domain: bytes


class Text(NamedTuple):
    """The decoded text parts; `is_encoded` if one of them was in base64 or quoted-printable."""

    plain: str
    html: str
    is_encoded: bool


def split_mail(mail: bytes) -> Letter:
    """Header block and body: one search for the empty line."""
    end = mail.find(b"\n\n")
    if end < 0:
        end = len(mail)
    head = b"\n" + mail[:end]
    return Letter(head, head.lower(), mail[end + 2 :])


def field_of(letter: Letter, name: bytes) -> bytes:
    """The first line of a header field as it was written; `name` is in lower case."""
    start = letter.low.find(b"\n" + name + b":")
    if start < 0:
        return b""
    start += len(name) + 2
    end = letter.low.find(b"\n", start)
    return letter.head[start : end if end >= 0 else None].strip()


def sender_of(letter: Letter) -> Sender:
    """Name and address of the From field."""
    line = field_of(letter, b"from")
    address = ADDRESS.search(line)
    if address is None:
        return Sender(line, b"", b"")
    domain = b".".join(address.group(2).lower().split(b".")[-3:])
    return Sender(line[: address.start()], address.group(0).lower(), domain)


def subject_of(letter: Letter) -> str:
    """The subject, its encoded words decoded."""
    text = field_of(letter, b"subject").decode("latin-1")
    if "=?" not in text:
        return text
    try:
        parts = decode_header(text)
    except (ValueError, HeaderParseError):  # damaged base64
        return text
    return "".join(_decoded(part, charset) if isinstance(part, bytes) else part for part, charset in parts)


def subject_words(subject: str) -> set[str]:
    """Its different words, and the tags of mailing lists."""
    return set(SUBJECT_WORD.findall(subject.lower()))


def sent_at(letter: Letter) -> tuple[float, float]:
    """Hour and offset from Greenwich in hours, as the Date field says; not a number where it cannot be read."""
    try:
        when = parsedate_to_datetime(field_of(letter, b"date").decode("latin-1"))
    except (ValueError, TypeError, IndexError, OverflowError):  # what people write as dates
        return float("nan"), float("nan")
    away = when.utcoffset()
    return float(when.hour), away.total_seconds() / 3600 if away is not None else float("nan")


def parse_mime(mail: bytes) -> Message:
    """The tree of parts, by the standard library. Expensive: it reads the whole mail line by line."""
    start = mail.find(b"\n") + 1 if mail.startswith(b"From ") else 0
    return message_from_bytes(mail[start:])


def read_text(message: Message) -> Text:
    """The text of all text parts, decoded from base64, quoted-printable and their character sets."""
    texts: dict[str, list[str]] = {"plain": [], "html": []}
    is_encoded = False
    for part in message.walk():
        if part.get_content_maintype() != "text" or part.get_filename():
            continue
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue
        encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
        is_encoded |= encoding in ("base64", "quoted-printable")
        kind = "html" if part.get_content_subtype() == "html" else "plain"
        texts[kind].append(_decoded(payload[:LONGEST_TEXT], part.get_content_charset()))
    return Text("\n".join(texts["plain"]), "\n".join(texts["html"]), is_encoded)


def _decoded(text: bytes, charset: str | None) -> str:
    try:
        return text.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # a character set that nobody knows
        return text.decode("latin-1")


def words_of(text: Text) -> list[str]:
    """The words of the body, tags of HTML included."""
    return WORD.findall(text.plain.lower()) + WORD.findall(text.html.lower())


def grams_of(text: Text) -> NDArray[np.uint32]:
    """The sequences of three bytes of the body, each hashed to a bucket (the same on every machine)."""
    letters = np.frombuffer((text.plain + text.html).lower().encode("utf-8", "replace"), np.uint8).astype(np.uint32)
    if len(letters) < 3:
        return np.zeros(0, np.uint32)
    codes = (letters[:-2] << 16) | (letters[1:-1] << 8) | letters[2:]
    return (codes * np.uint32(2654435761)) >> np.uint32(32 - GRAM_BITS)


class Page(HTMLParser):
    """Counts what an HTML page is made of."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: dict[str, int] = {}
        self.colours: set[str] = set()
        self.n_open = self.n_closed = self.n_comments = self.n_visible = 0
        self.n_remote_images = self.n_events = self.n_hidden = 0
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count a tag and what its attributes tell."""
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.n_open += 1
        self._silent = tag in ("script", "style")
        for name, value in attrs:
            if name in ("color", "bgcolor") and value:
                self.colours.add(value.lower())
            elif name == "src" and tag == "img" and value and "://" in value:
                self.n_remote_images += 1
            elif name.startswith("on"):
                self.n_events += 1
            elif name == "style" and value and ("none" in value or "hidden" in value):
                self.n_hidden += 1

    def handle_endtag(self, tag: str) -> None:
        """Count it."""
        self.n_closed += 1
        self._silent = False

    def handle_comment(self, data: str) -> None:
        """Count it."""
        self.n_comments += 1

    def handle_data(self, data: str) -> None:
        """Count what is seen."""
        if not self._silent:
            self.n_visible += len(data.strip())

    def count(self, *tags: str) -> float:
        """How many of these tags were opened."""
        return float(sum(self.tags.get(tag, 0) for tag in tags))


def read_page(html: str) -> Page:
    """Parse HTML as far as the standard library can."""
    page = Page()
    try:
        page.feed(html)
        page.close()
    except AssertionError:  # its word for a declaration that it cannot read
        page.n_comments += 1
    return page


def hosts_and_urls(text: Text) -> Iterator[tuple[str, str, bool]]:
    """Host, address and whether the host is hidden by a user name or a port, of each URL that can be parsed."""
    for url in URL.findall(text.plain) + URL.findall(text.html):
        try:
            parts = urlsplit(url)
            yield (parts.hostname or "").lower(), url, "@" in parts.netloc or parts.port is not None
        except ValueError:
            continue
