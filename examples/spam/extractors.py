"""The extractors of a mail: twelve acquisitions, each a plain function of the bytes and of what it needs.

Cheap ones search bytes in the headers or in the raw body; expensive ones parse MIME, decode text, read HTML and URLs.
An extractor that others need returns what they want beside its features: the entry that it does not `yield`.
"""

from __future__ import annotations

from email.message import Message
from typing import Any

import numpy as np

import miserly as ms
from examples.spam import parsing
from examples.spam.learning import Knowledge
from examples.spam.parsing import Letter, Text
from miserly.runtime import Extractor

FIELDS = (
    b"in-reply-to references reply-to cc sender errors-to organization mime-version content-transfer-encoding "
    b"x-mailer user-agent x-mimeole x-priority list-id list-unsubscribe precedence message-id"
).split()
HEADERS = ["mail_length", "head_length", "n_fields", "n_received", "body_type"]
HEADERS += [f"has_{name.decode().replace('-', '_')}" for name in FIELDS]
ROUTE = ["n_addresses", "n_networks", "n_unknown", "n_forged", "n_helo", "hour", "zone", "is_for_nobody"]
SENDER = ["address_rate", "address_seen", "domain_rate", "domain_seen", "name_length", "name_is_capitals"]
SENDER += ["address_digits", "address_length", "reply_to_other_domain", "returns_to_other_domain"]
SUBJECT = ["subject_evidence", "subject_for", "subject_against", "subject_length", "subject_capitals", "subject_marks"]
SUBJECT += ["subject_is_reply", "subject_is_listed", "subject_digits", "subject_gap"]
RAW_WORDS = {
    "html": b"<html",
    "links": b"http://",
    "escapes": b"=3d",
    "comments": b"<!--",
    "dollars": b"$",
    "cries": b"!",
    "click": b"click",
    "free": b"free",
    "money": b"money",
    "remove": b"remove",
    "unsubscribe": b"unsubscribe",
    "wrote": b"wrote:",
    "quoted": b"\n>",
    "signature": b"\n-- \n",
}
RAW_LENGTH = 4096
RAW = [f"raw_{name}" for name in RAW_WORDS]
TAGS = ("a", "img", "table", "font", "form", "script", "br", "center")
HTML = [f"tag_{tag}" for tag in TAGS]
HTML += ["n_tags", "n_colours", "n_unclosed", "n_comments", "n_visible", "n_remote_images", "n_hidden", "visible_share"]
WORDS = ["words_evidence", "words_mean", "words_for", "words_against", "n_words", "n_different", "word_length"]
_BODY_WORDS = (
    "free money click here remove offer credit guarantee order please dear list receive business income email "
    "million university linux perl wrote users think would"
)
BODY_WORDS = _BODY_WORDS.split()
WORDS += [f"word_{word}" for word in BODY_WORDS]
URLS = [
    "n_urls",
    "n_hosts",
    "n_numeric_hosts",
    "n_disguised",
    "longest_url",
    "n_queries",
    "n_escapes",
    "n_com",
    "n_org",
]
PARTS = ["n_parts", "n_attachments", "n_images", "attached_bytes", "largest_part", "n_named", "is_alternative"]
TEXT = ["plain_length", "html_length", "is_encoded", "n_undecodable", "n_foreign", "n_lines"]
GRAMS = ["grams_mean", "grams_first", "capitals", "digits", "punctuation", "spaces"]
BODY_TYPES = {b"text/plain": 1.0, b"text/html": 2.0, b"multipart/alternative": 3.0, b"multipart/mixed": 4.0}


@ms.extractor("headers", yields=HEADERS)
def headers(mail: bytes) -> dict[str, Any]:
    """Which fields the header block has: one search for their names."""
    letter = parsing.split_mail(mail)
    fields = parsing.FIELD.findall(letter.low)
    present = set(fields)
    kind = parsing.field_of(letter, b"content-type").partition(b";")[0].strip().lower()
    sizes = len(mail), len(letter.head), len(fields), fields.count(b"received")
    figures = [*sizes, BODY_TYPES.get(kind, 5.0) if kind else 0.0, *(name in present for name in FIELDS)]
    return {"letter": letter, **dict(zip(HEADERS, map(float, figures)))}


@ms.extractor("route", yields=ROUTE, needs=headers)
def route(mail: bytes, headers: dict[str, Any]) -> list[float]:
    """Through whose hands it came, as the Received fields say, and when it was sent."""
    letter: Letter = headers["letter"]
    low = letter.low
    networks = parsing.IP.findall(low)
    counts = len(networks), len(set(networks)), low.count(b"unknown"), low.count(b"forged"), low.count(b"helo")
    to = parsing.field_of(letter, b"to")
    return [*map(float, counts), *parsing.sent_at(letter), float(b"@" not in to)]


@ms.extractor("raw_body", yields=RAW, needs=headers)
def raw_body(mail: bytes, headers: dict[str, Any]) -> list[float]:
    """How often some words stand in the first 4 KB of the body as it came, without decoding anything."""
    body = headers["letter"].body[:RAW_LENGTH].lower()
    return [float(body.count(word)) for word in RAW_WORDS.values()]


@ms.extractor("mime")
def mime(mail: bytes) -> Message:
    """The tree of parts: the others wait for it."""
    return parsing.parse_mime(mail)


@ms.extractor("parts", yields=PARTS, needs=mime)
def parts(mail: bytes, message: Message) -> list[float]:
    """How the mail is put together, and how large its attachments are."""
    leaves = [part for part in message.walk() if not part.is_multipart()]
    sizes = [len(str(part.get_payload())) for part in leaves]
    attached = [part.get_content_disposition() == "attachment" or bool(part.get_filename()) for part in leaves]
    figures = (
        len(leaves),
        sum(attached),
        sum(part.get_content_maintype() == "image" for part in leaves),
        sum(size for size, is_attached in zip(sizes, attached) if is_attached),
        max(sizes, default=0),
        sum(part.get_filename() is not None for part in leaves),
        message.get_content_subtype() == "alternative",
    )
    return [float(figure) for figure in figures]


@ms.extractor("text", yields=TEXT, needs=mime)
def text(mail: bytes, message: Message) -> dict[str, Any]:
    """The text, decoded."""
    found = parsing.read_text(message)
    whole = found.plain + found.html
    n_foreign = 0 if whole.isascii() else sum(c > "\x7f" for c in whole)
    figures = (len(found.plain), len(found.html), found.is_encoded, whole.count("\ufffd"), n_foreign, whole.count("\n"))
    return {"text": found, **dict(zip(TEXT, map(float, figures)))}


@ms.extractor("html", yields=HTML, needs=text)
def html(mail: bytes, text: dict[str, Any]) -> list[float]:
    """What the HTML is made of."""
    source = text["text"].html
    page = parsing.read_page(source)
    tags = page.n_open, len(page.colours), page.n_open - page.n_closed
    others = page.n_comments, page.n_visible, page.n_remote_images, page.n_hidden
    return [*map(page.count, TAGS), *map(float, tags + others), page.n_visible / max(len(source), 1)]


@ms.extractor("urls", yields=URLS, needs=text)
def urls(mail: bytes, text: dict[str, Any]) -> list[float]:
    """Where its links lead."""
    found = list(parsing.hosts_and_urls(text["text"]))
    hosts = {host for host, _, _ in found}
    counts = (
        len(found),
        len(hosts),
        sum(parsing.NUMERIC_HOST.fullmatch(host) is not None for host in hosts),
        sum(is_disguised for _, _, is_disguised in found),
        max((len(url) for _, url, _ in found), default=0),
        sum("?" in url for _, url, _ in found),
        sum(url.count("%") for _, url, _ in found),
        sum(host.endswith(".com") for host in hosts),
        sum(host.endswith(".org") for host in hosts),
    )
    return [float(count) for count in counts]


def learnt_extractors(knowledge: Knowledge) -> list[Extractor]:
    """The extractors that use what was learnt from training mails."""

    @ms.extractor("sender", yields=SENDER, needs=headers)
    def sender(mail: bytes, headers: dict[str, Any]) -> list[float]:
        letter: Letter = headers["letter"]
        who = parsing.sender_of(letter)
        digits = sum(48 <= c < 58 for c in who.address)
        reply, returns = (parsing.field_of(letter, name).lower() for name in (b"reply-to", b"return-path"))
        others = (bool(place) and who.domain not in place for place in (reply, returns))
        shape = len(who.name), who.name.isupper(), digits, len(who.address), *others
        return [*knowledge.of_sender(who), *map(float, shape)]

    @ms.extractor("subject", yields=SUBJECT, needs=headers)
    def subject(mail: bytes, headers: dict[str, Any]) -> list[float]:
        line = parsing.subject_of(headers["letter"])
        n = max(len(line), 1)
        capitals = sum(map(str.isupper, line)) / n
        marks = line.count("!") + line.count("?") + line.count("$")
        is_reply = line[:3].lower() == "re:"
        shape = [len(line), capitals, marks, is_reply, "[" in line, sum(map(str.isdigit, line)), "    " in line]
        return [*knowledge.of_subject(parsing.subject_words(line)), *map(float, shape)]

    @ms.extractor("words", yields=WORDS, needs=text)
    def words(mail: bytes, text: dict[str, Any]) -> list[float]:
        found = parsing.words_of(text["text"])
        different = set(found)
        shape = len(found), len(different), sum(map(len, different)) / max(len(different), 1)
        counts = [float(found.count(word)) if word in different else 0.0 for word in BODY_WORDS]
        return [*knowledge.of_words(different), *map(float, shape), *counts]

    @ms.extractor("grams", yields=GRAMS, needs=text)
    def grams(mail: bytes, text: dict[str, Any]) -> list[float]:
        found: Text = text["text"]
        letters = np.frombuffer((found.plain + found.html).encode("utf-8", "replace"), np.uint8)
        shares = np.bincount(KIND_OF_LETTER[letters], minlength=5)[1:] / max(len(letters), 1)
        return [*knowledge.of_grams(parsing.grams_of(found)), *shares.tolist()]

    return [sender, subject, words, grams]


def all_extractors(knowledge: Knowledge) -> list[Extractor]:
    """Everything that can be had from a mail; the order of the columns of a training matrix."""
    return [headers, route, raw_body, mime, parts, text, html, urls, *learnt_extractors(knowledge)]


def _kinds() -> np.ndarray:
    """Kind of each byte: 1 capital, 2 digit, 3 punctuation, 4 space, 0 other."""
    kinds = np.zeros(256, np.uint8)
    kinds[65:91], kinds[48:58] = 1, 2
    kinds[[*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)]] = 3
    kinds[[9, 10, 13, 32]] = 4
    return kinds


KIND_OF_LETTER = _kinds()
