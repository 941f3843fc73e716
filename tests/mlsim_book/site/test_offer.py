"""What a site offers to students, by the addresses that its book has."""

from __future__ import annotations

import html
import json
import re
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pots import write_book

from mlsim_book.build import build, site_hash
from mlsim_book.check.book import check_book
from mlsim_book.cli import main
from mlsim_book.errors import BookError
from mlsim_book.read.settings import web_address

pytestmark = pytest.mark.usefixtures("with_assets")
WHEEL = "notebooks/pots-1.0-py3-none-any.whl"
REPOSITORY = "repo-url: https://github.com/a/clay"


def quiet(line: str) -> None:
    """Say nothing."""


def links(site: Path) -> dict[str, str]:
    """Return what the page of the notebook offers: addresses by text."""
    page = (site / "sub" / "glaze.html").read_text("utf-8")
    nav = re.search(r'<nav class="notebook-links".*?</nav>', page, re.DOTALL)
    assert nav is not None
    found = re.findall(r'href="([^"]*)".*?(?:</svg>)(.*?)</a>', nav[0], re.DOTALL)
    line = re.search(r"<code>(.*)</code>", nav[0])
    return {text: where for where, text in found} | ({"": html.unescape(line[1])} if line else {})


def first_cell(path: Path) -> str:
    return "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])


def files(site: Path) -> set[str]:
    return {
        path.relative_to(site).as_posix()
        for path in (site / "notebooks").rglob("*")
        if path.is_file()
    }


def test_a_book_without_addresses_offers_a_zip(tmp_path: Path) -> None:
    book = write_book(tmp_path)
    site = build(book, progress=quiet)
    assert links(site) == {"Download notebook and package": "../notebooks/sub/glaze.zip"}
    assert files(site) == {WHEEL, "notebooks/sub/glaze.ipynb", "notebooks/sub/glaze.zip"}
    with zipfile.ZipFile(site / "notebooks/sub/glaze.zip") as archive:
        assert archive.namelist() == ["glaze/glaze.ipynb", f"glaze/{Path(WHEEL).name}"]
        assert archive.read(archive.namelist()[1]) == (site / WHEEL).read_bytes()
    assert check_book(book).found == []
    before = site_hash(site)
    assert site_hash(build(book, progress=quiet)) == before


def test_a_site_with_an_address_offers_a_line_for_pip(tmp_path: Path) -> None:
    site = build(write_book(tmp_path, "site-url: https://a.org/clay/"), progress=quiet)
    assert links(site) == {
        "Download notebook": "../notebooks/sub/glaze.ipynb",
        "": f'pip install "pots[all] @ https://a.org/clay/{WHEEL}"',
    }
    assert files(site) == {WHEEL, "notebooks/sub/glaze.ipynb", "notebooks/pots.txt"}
    named = (site / "notebooks/pots.txt").read_text("utf-8")
    assert named == f"pots[all] @ https://a.org/clay/{WHEEL}\n"
    assert "https://a.org/clay/notebooks/pots.txt" in first_cell(site / "notebooks/sub/glaze.ipynb")


def test_a_repository_is_opened_in_colab(tmp_path: Path) -> None:
    site = build(write_book(tmp_path, REPOSITORY, "repo-branch: v1"), progress=quiet)
    colab = "colab.research.google.com/github/a/clay/blob/v1/notebooks/sub/glaze.ipynb"
    assert links(site) == {
        "Download notebook": "../notebooks/sub/glaze.ipynb",
        "Open in Colab": f"https://{colab}",
    }
    assert "github.com/a/clay@v1#subdirectory=pots_pkg" in first_cell(
        site / "notebooks/sub/glaze.ipynb"
    )


def test_an_address_that_is_given_to_a_build_leaves_the_repository_alone(tmp_path: Path) -> None:
    book = write_book(tmp_path)
    committed = book / "notebooks/sub/glaze.ipynb"
    before = committed.read_bytes()
    assert main(["build", str(book), "--site-url", "https://b.org/x/"]) == 0
    site = book / "_book"
    assert committed.read_bytes() == before
    offered = (site / "notebooks/sub/glaze.ipynb").read_text("utf-8")
    assert "https://b.org/x/notebooks/pots.txt" in offered
    assert "[start](https://b.org/x/index.html)" in offered
    assert links(site)[""] == f'pip install "pots[all] @ https://b.org/x/{WHEEL}"'
    assert 'rel="canonical" href="https://b.org/x/' in (site / "index.html").read_text("utf-8")
    assert check_book(book).found == []


def test_notebooks_for_another_site_go_into_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = write_book(tmp_path / "book")
    command = ["notebooks", str(book), "--site-url", "https://b.org/x"]
    assert main(command) == 1
    assert "notebooks/ belongs to the repository" in capsys.readouterr().err
    assert main([*command, "--output-dir", str(tmp_path / "there")]) == 0
    assert "https://b.org/x/notebooks/pots.txt" in first_cell(tmp_path / "there/sub/glaze.ipynb")
    assert main(["notebooks", str(book), "--check"]) == 0


@pytest.mark.parametrize(
    "given", ["a.org/clay", "https://a.org/my clay", 'https://a.org/"; x', "https://a.org/$(x)", ""]
)
def test_an_address_that_would_break_a_command_is_refused(given: str) -> None:
    with pytest.raises(BookError, match=r"(?s)no address.*https://me\.github\.io/book"):
        web_address(given)


def test_quarto_takes_no_address(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="for our own engine"):
        build(tmp_path, engine="quarto", site_url="https://a.org")


@pytest.mark.parametrize("address", ["", "site-url: https://a.org/clay"])
def test_the_zip_of_a_site_has_the_wheel_once(tmp_path: Path, address: str) -> None:
    book = write_book(tmp_path, *filter(None, [address]))
    site = build(book, formats=("zip",), progress=quiet)
    with zipfile.ZipFile(site / "Clay.zip") as archive:
        archive.extractall(tmp_path / "disk")
    disk = tmp_path / "disk" / "Clay"
    assert [each for each in files(disk) if each.endswith((".whl", ".zip"))] == [WHEEL]
    (name, where), *_ = links(disk).items()
    assert name in {"Open notebook", "Download notebook"}
    assert (disk / "sub" / urlsplit(where).path).resolve().name == "glaze.ipynb"
    assert (disk / "sub" / urlsplit(where).path).is_file()


def test_without_a_package_the_notebook_alone(tmp_path: Path) -> None:
    book = write_book(tmp_path, "site-url: https://a.org/clay")
    text = (book / "_quarto.yml").read_text("utf-8")
    (book / "_quarto.yml").write_text(re.sub(r"  (?:package|path|extras):.*\n", "", text), "utf-8")
    assert main(["notebooks", str(book)]) == 0
    site = build(book, progress=quiet)
    assert links(site) == {"Download notebook": "../notebooks/sub/glaze.ipynb"}
    assert files(site) == {"notebooks/sub/glaze.ipynb"}
