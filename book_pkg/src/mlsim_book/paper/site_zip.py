"""The whole site as one zip that opens from disk: no server, no request, search included."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

Time = tuple[int, int, int, int, int, int]
# A page from disk may neither preload a font nor rely on a policy that names its "self".
_ONLINE = re.compile(
    r'<link rel="(?:preload|canonical)"[^>]*>\n?'
    r'|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
    r'|<nav class="downloads".*?</nav>\n?',
    re.DOTALL,
)
# The zip of a site has each notebook and the wheel, and so no zips of both.
_ZIPPED = re.compile(r'(<a class="notebook-link" href="[^"]*)\.zip(".*?)Download notebook[^<]*<')


def write_zip(
    site: Path, name: str, pages: Collection[str], *, without: Collection[str],
    time: Time,
) -> None:  # fmt: skip
    """Write the zip of a site into the site.

    Parameters
    ----------
    name
        The zip's own name, and that of the folder inside.
    pages
        The files that are pages of the book.
    without
        Files that don't go in, the book in other formats for one.
    time
        The timestamp of every file.
    """
    left_out = {name, *without}
    files = {
        path.relative_to(site).as_posix(): path
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).as_posix() not in left_out
    }
    read = (
        from_disk(files[each].read_text(encoding="utf-8")).encode()
        if each in pages
        else files[each].read_bytes()
        for each in sorted(files)
    )
    pack(site / name, zip(sorted(files), read, strict=True), time)


def pack(
    path: Path, files: Iterable[tuple[str, bytes]], time: Time, *, compress: bool = True
) -> None:
    """Write files into a zip, in a folder of its name; the same files make the same zip.

    A wheel is stored as it is: it is a zip itself.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(f"{path.stem}/{name}", time)
            squeeze = compress and not name.endswith(".whl")
            entry.compress_type = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, data)


def from_disk(page: str) -> str:
    r"""Return a page as it is read from disk.

    >>> from_disk('<link rel="preload" href="a" as="font"><p>Hi')
    '<p>Hi'
    >>> from_disk('<nav class="downloads"\n></nav>\n<p>Hi')
    '<p>Hi'
    >>> from_disk('<a class="notebook-link" href="a.zip" x><b>Download notebook (zip)</b></a>')
    '<a class="notebook-link" href="a.ipynb" x><b>Open notebook</b></a>'
    """
    return _ZIPPED.sub(r"\1.ipynb\2Open notebook<", _ONLINE.sub("", page))
