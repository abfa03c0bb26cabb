"""Mails with their classes: from a folder whose subfolders (or archive) are named after them, or made up by seed."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HAM_WORDS = (
    "meeting patch kernel release question thanks module branch tests server weekend draft review version build "
    "python script config library paper results lunch ticket deploy archive wrote think would because maybe"
)
SPAM_WORDS = (
    "free money offer click guarantee credit winner million income limited order remove cash loans viagra mortgage "
    "prize urgent investment opportunity lowest discount casino earn bonus amazing miracle debt approved"
)
COMMON_WORDS = (
    "the and you for with that this have from your are not will can all has been more when about please mail today "
    "here time people work know time list new see send only just like good make first"
)
FRIENDS = ("anna@lists.example.org", "ben@example.org", "carla@dev.example.net", "dan@example.edu", "eva@example.net")
FREEMAIL = ("hotmail.example.com", "mail.example.com", "offers.example.biz", "dialup.example.net")


class Mails(NamedTuple):
    """Raw mails and whether each is spam."""

    raw: list[bytes]
    is_spam: NDArray[np.bool_]


def read_folder(folder: Path) -> Mails:
    """Read the mails of all subfolders whose name says "ham" or "spam", also those in `.tar.gz` archives."""
    found = sorted(_files(folder))
    if len({is_spam for _, is_spam, _ in found}) < 2:
        raise ValueError(
            f"'{folder}' needs mails of both kinds, in folders (or a .tar.gz of folders) with 'ham' or 'spam' in their "
            f"names; {len(found)} mails were found."
        )
    return Mails([raw for _, _, raw in found], np.array([is_spam for _, is_spam, _ in found]))


def _files(folder: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Name, class and bytes of each mail."""
    for path in folder.glob("*/*"):
        kind = _kind(path.parent.name)
        if kind is not None and path.is_file():
            yield f"{path.parent.name}/{path.name}", kind, path.read_bytes()
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                kind = _kind(Path(member.name).parent.name)
                file = tar.extractfile(member) if kind is not None and member.isfile() else None
                if kind is not None and file is not None:
                    yield member.name, kind, file.read()


def _kind(folder: str) -> bool | None:
    name = folder.lower()
    return False if "ham" in name else True if "spam" in name else None


def generate(n: int = 400, seed: int = 0) -> Mails:
    """Mails that look like mails: a third spam, some of it dressed as ham, newsletters that look like spam."""
    random = np.random.default_rng(seed)
    is_spam = random.random(n) < 1 / 3
    return Mails([_mail(random, bool(spam), i) for i, spam in enumerate(is_spam)], is_spam)


def _mail(random: np.random.Generator, is_spam: bool, number: int) -> bytes:
    looks_spam = is_spam != (random.random() < 0.1)  # how its headers look; what it says follows the class
    mail = EmailMessage()
    away = timezone(timedelta(hours=int(random.integers(-12, 13))))
    mail["Received"] = f"from {_host(random, looks_spam)} by mx.example.org with SMTP id {number:06d}"
    mail["Date"] = format_datetime(datetime(2002, 6, 1, tzinfo=away) + timedelta(minutes=37 * number))
    mail["From"] = _sender(random, looks_spam)
    mail["To"] = "undisclosed-recipients:;" if looks_spam and random.random() < 0.4 else "you@example.org"
    mail["Subject"] = _subject(random, looks_spam)
    mail["Message-ID"] = f"<{number}.{int(random.integers(1 << 30)):x}@example.org>"
    if not looks_spam and random.random() < 0.5:
        mail["In-Reply-To"] = f"<{number - 1}@example.org>"
        mail["List-Id"] = "<dev.lists.example.org>"
    if looks_spam and random.random() < 0.4:
        mail["X-Priority"] = "1"
    mail.set_content(_text(random, is_spam), cte=str(random.choice(["7bit", "base64", "base64"])))
    if random.random() < (0.7 if is_spam else 0.15):
        mail.add_alternative(_html(random, is_spam), subtype="html", cte="base64")
    if random.random() < 0.1:
        size = int(random.integers(500, 8000))
        mail.add_attachment(random.bytes(size), "application", "octet-stream", filename=f"file{number}.bin")
    for place, part in enumerate(mail.walk()):
        if part.is_multipart():
            part.set_boundary(f"----=_{number:06d}_{place}")  # by itself it would be random
    return mail.as_bytes()


def _host(random: np.random.Generator, looks_spam: bool) -> str:
    numbers = ".".join(str(k) for k in random.integers(1, 255, 4))
    return f"{'unknown' if looks_spam else 'mail.example.net'} [{numbers}]"


def _sender(random: np.random.Generator, looks_spam: bool) -> str:
    if not looks_spam:
        return str(random.choice(FRIENDS))
    return f'"BEST DEALS" <win{int(random.integers(1000, 99999))}@{random.choice(FREEMAIL)}>'


def _subject(random: np.random.Generator, looks_spam: bool) -> str:
    words = " ".join(random.choice((SPAM_WORDS if looks_spam else HAM_WORDS).split(), 3))
    return f"{words.upper()} !!!" if looks_spam else f"Re: [dev] {words}"


def _text(random: np.random.Generator, is_spam: bool) -> str:
    """Common words, some of the class, a few of the other."""
    own, other = (SPAM_WORDS, HAM_WORDS) if is_spam else (HAM_WORDS, SPAM_WORDS)
    n = int(random.integers(60, 400))
    words = np.concatenate(
        [random.choice(w.split(), k) for w, k in ((COMMON_WORDS, n), (own, n // 5), (other, n // 20))]
    )
    random.shuffle(words)
    lines = [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
    return "\n".join(("> " if not is_spam and random.random() < 0.2 else "") + line for line in lines) + "\n"


def _html(random: np.random.Generator, is_spam: bool) -> str:
    font = '<font color="#ff0000" size="5">' if is_spam else "<p>"
    links = "".join(
        f'<a href="http://{"10.1.2.3" if is_spam and random.random() < 0.3 else "www.example.org"}/x?id={k}">here</a> '
        for k in range(int(random.integers(1, 8)))
    )
    return f'<html><body bgcolor="#ffffff"><center>{font}{_text(random, is_spam)}</center>{links}</body></html>'
