"""Builds the documentation as a folder of HTML pages: `make docs`, or `python docs/make_docs.py [FOLDER]`.

The pages are the README, the walk-through, the how-tos, the six notebooks as they are in git, and a reference
made from docstrings. Nothing is loaded from a network. The build fails when a link leads nowhere.
"""

from __future__ import annotations

import html
import importlib
import os
import re
import sys
import tomllib
import warnings
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pdoc
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from pdoc.render_helpers import to_html

ROOT = Path(__file__).resolve().parents[1]
BOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Files that are no page are linked where the source is published.
SOURCE = PROJECT["urls"]["Homepage"] + "/blob/main/"

# heading -> title -> file of the repository
MENU = {
    "Start": {
        "Home": "README.md",
        "Walk-through": "notebooks/WALKTHROUGH.md",
        "How-tos": "docs/howto.md",
        "For a class": "docs/teaching.md",
    },
    "Notebooks": {b.stem.replace("_", " "): f"notebooks/{b.name}" for b in BOOKS},
    "More": {
        "Data": "data/README.md",
        "Inside kit": "kit/README.md",
        "Changes": "CHANGELOG.md",
    },
}
ROOMS = (
    "records records.tables errors stats stats.calibration checks data judging rewards rubrics people tuning "
    "evaluation training runs plots"
).split()
NAMES = {
    "README.md": "index.html",
    "kit/README.md": "inside.html",
    "data/README.md": "data.html",
}
PAGES = {
    file: NAMES.get(
        file, re.sub(r"^docs/|\.(md|ipynb)$", "", file).lower() + ".html"
    )
    for links in MENU.values()
    for file in links.values()
}


def docstring_as_markdown(text: str) -> str:
    """A docstring of the kit in Markdown: examples and tables as code, `name : meaning` as a list."""
    parts = []
    for part in text.split("\n\n"):
        if part.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        elif re.search(r"\S {3,}\S", part):
            parts.append(f"```text\n{part}\n```")
        else:
            escaped = html.escape(part, quote=False)
            parts.append(
                re.sub(r"^(?! )(\w[\w, *]*) : ", r"- **\1**: ", escaped, flags=re.M)
            )
    return "\n\n".join(parts)


def relink(body: str, file: str) -> str:
    """Make links between files of the repository into links between pages; pictures of a network become words."""
    page, folder = PAGES[file], (ROOT / file).parent
    soup = BeautifulSoup(body, "html.parser")
    for image in soup.find_all("img", src=re.compile("^https?:")):
        image.replace_with(image.get("alt", ""))
    for tag, name in [
        (t, n) for n in ("href", "src") for t in soup.find_all(**{n: True})
    ]:
        address = urlsplit(tag[name])
        if address.scheme or not address.path:
            continue
        target = Path(os.path.normpath(folder / unquote(address.path)))
        path = target.relative_to(ROOT).as_posix()
        if not target.exists():
            sys.exit(f"{file}: the link to {tag[name]} leads nowhere")
        if path in PAGES:
            tag[name] = os.path.relpath(PAGES[path], Path(page).parent)
        elif name == "href":
            tag[name] = SOURCE + path
        else:
            tag[name] = os.path.relpath(f"images/{target.name}", Path(page).parent)
    return str(soup)


def body_of(file: str) -> str:
    """The content of a page as HTML, from Markdown or from a notebook with its stored outputs."""
    path = ROOT / file
    if path.suffix == ".ipynb":
        exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True)
        exporter.exclude_output_prompt = True
        exporter.exclude_anchor_links = True
        text, _ = exporter.from_filename(str(path))
        # The kit's code blocks and those of the reference share one style.
        return text.replace('class="highlight', 'class="pdoc-code highlight')
    text = path.read_text("utf-8")
    return to_html(re.sub(r"^```(\w+) fails$", r"```\1", text, flags=re.M))


def write_pages(out: Path) -> None:
    """Write every page of the menu."""
    template = pdoc.render.env.get_template("page.html.jinja2")
    menu = {
        heading: {title: PAGES[file] for title, file in links.items()}
        for heading, links in MENU.items()
    }
    menu["Reference"] = {"kit": "kit.html"}
    menu["Reference"] |= {
        f"kit.{room}": f"kit/{room.replace('.', '/')}.html" for room in ROOMS
    }
    for links in MENU.values():
        for title, file in links.items():
            target = out / PAGES[file]
            target.parent.mkdir(parents=True, exist_ok=True)
            text = template.render(
                title=f"{title} - {PROJECT['name']}",
                menu=menu,
                here=PAGES[file],
                up="../" * PAGES[file].count("/"),
                body=relink(body_of(file), file),
            )
            target.write_text(text, "utf-8")
    (out / "images").mkdir(exist_ok=True)
    for image in (ROOT / ".github" / "images").iterdir():
        (out / "images" / image.name).write_bytes(image.read_bytes())


def write_reference(out: Path) -> None:
    """Write a page for the front door and one for each room."""
    rooms = [f"kit.{room}" for room in ROOMS]
    specs = [
        room for room in rooms if room != "kit.records.tables"
    ]  # comes with its room
    for module in map(importlib.import_module, ["kit", *rooms]):
        # A room loads a name at its first use; pdoc reads what is loaded.
        for name in getattr(module, "__all__", []):
            setattr(module, name, getattr(module, name))
    # Some annotations name packages that are imported for editors only; pdoc shows those as text.
    warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
    # pdoc adds the modules inside a room; a room's names are what it offers.
    others = "!(?!(?:" + "|".join(["kit", *map(re.escape, rooms)]) + ")$)"
    pdoc.pdoc("kit", *specs, others, output_directory=out)


def faults(out: Path) -> list[str]:
    """Links that lead nowhere, and things that a page would load from a network."""
    pages = {
        p: BeautifulSoup(p.read_text("utf-8"), "html.parser")
        for p in out.rglob("*.html")
    }
    anchors = {
        p: {t["id"] for t in soup.find_all(id=True)} for p, soup in pages.items()
    }
    wrong = []
    for page, soup in pages.items():
        name = page.relative_to(out)
        loaded = [t["src"] for t in soup.find_all(src=True)]
        loaded += [t["href"] for t in soup.find_all("link", href=True)]
        styles = " ".join(t.get_text() for t in soup.find_all("style"))
        loaded += re.findall(r"(?:@import|url\()\s*[\"']?([^\"')\s]+)", styles)
        wrong += [
            f"{name} loads {a}" for a in loaded if re.match("(https?:)?//", a)
        ]
        for address in loaded + [t["href"] for t in soup.find_all("a", href=True)]:
            link = urlsplit(address)
            if link.scheme or link.netloc:
                continue
            target = (
                Path(os.path.normpath(page.parent / unquote(link.path)))
                if link.path
                else page
            )
            if not target.is_file():
                wrong.append(f"{name}: {address} leads nowhere")
            elif link.fragment and unquote(link.fragment) not in anchors.get(
                target, set()
            ):
                wrong.append(f"{name}: there is no {address}")
    return wrong


def main(out: Path) -> None:
    """Build the site and check it."""
    pdoc.render.configure(
        docformat="markdown",
        show_source=False,
        template_directory=ROOT / "docs" / "templates",
    )
    # The first line of a docstring is plain text; the kit's own form is turned into Markdown.
    pdoc.render.env.filters["to_markdown"] = docstring_as_markdown
    out.mkdir(parents=True, exist_ok=True)
    write_reference(out)
    write_pages(out)
    wrong = faults(out)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(list(out.rglob('*.html')))} pages: {out / 'index.html'}")


if __name__ == "__main__":
    main(
        Path(
            sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs"
        ).resolve()
    )
