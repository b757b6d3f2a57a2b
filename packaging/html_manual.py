#!/usr/bin/env python3
"""html_manual.py FOLDER: the manual pages as HTML, with contents, links between the pages and a stylesheet. Needs mandoc."""
import html
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
# The pages at the head of each page; those of the commands are listed in rlock(1).
HEAD = ("rlock.1", "rlock.toml.5", "rlock-recipes.7", "rlock-guarantees.7", "rlock-formats.7", "rlock-stability.7", "rlock-protocol.7")
PAGES = (*HEAD, *sorted(path.name for path in (TOP / "man").glob("rlock-*.1")))
NAMES = {page: re.sub(r"\.(\d)$", r"(\1)", page) for page in PAGES}
PROPER = {"ci": "CI", "kubernetes": "Kubernetes", "cronjob": "CronJob", "redis": "Redis"}
FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="manual.css">
</head>
<body>
<header><a class="name" href="index.html">rlock</a><nav>{pages}</nav></header>
<main>
<aside>{contents}</aside>
<article>
{text}
</article>
</main>
<footer>{version}</footer>
</body>
</html>
"""


def mandoc(page):
    return subprocess.run(["mandoc", "-T", "html", "-O", "fragment", TOP / "man" / page], check=True, capture_output=True,
                          text=True).stdout


def example(match):
    """A block of code: mandoc breaks each indented line a second time."""
    text = re.sub(r"\n?<br/>\n", "\n", match[1]).strip("\n")
    indent = min((len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()), default=0)
    return "<pre>" + "\n".join(line[indent:] for line in text.split("\n")) + "</pre>"


def link_pages(text, this):
    """rlock.toml(5), in whatever type, is a link to that page."""
    for page, name in NAMES.items():
        if page != this:
            stem, section = page[:-2], page[-1]
            text = re.sub(rf"(?<![\w.-])(?:<b>{re.escape(stem)}</b>|{re.escape(stem)})\s?\({section}\)",
                          f'<a href="{page}.html">{name}</a>', text)
    return text


def sentence(title):
    """A heading in capitals as a part of a sentence."""
    return " ".join(PROPER.get(word, word) for word in " ".join(title.split()).capitalize().split(" "))


def link_sections(text):
    """The name of a section, in bold, is a link to it."""
    known = {" ".join(title.split()): ident for ident, title in sections(text)}
    return re.sub(r"<b>([A-Z][A-Z0-9 .]+)</b>",
                  lambda match: f'<a href="#{known[match[1]]}">{sentence(match[1])}</a>' if match[1] in known else match[0], text)


def sections(text):
    return re.findall(r'<h1 class="Sh" id="([^"]+)"><a[^>]*>(.*?)</a></h1>', text, re.DOTALL)


def frame(title, text, contents, version, this=None):
    pages = "".join(f'<a href="{page}.html"{" class=here" if page == this else ""}>{NAMES[page]}</a>' for page in HEAD)
    return FRAME.format(title=html.escape(title), text=text, contents=contents, pages=pages, version=html.escape(version))


def convert(page):
    """(the page, what it is about, the version)"""
    raw = mandoc(page)
    version = html.unescape(re.search(r'<td class="foot-os">(.*?)</td>', raw)[1])
    about = " ".join(re.search(r'id="NAME".*?<p class="Pp">.*? - (.*?)</p>', raw, re.DOTALL)[1].split())
    text = re.search(r'<div class="manual-text">(.*)</div>', raw, re.DOTALL)[1]
    text = re.sub(r"<pre>(.*?)</pre>", example, text, flags=re.DOTALL)
    text = re.sub(r'<p class="Pp"></p>\n', "", text)
    contents = "<ul>" + "".join(f'<li><a href="#{ident}">{sentence(title)}</a></li>'
                                for ident, title in sections(text)) + "</ul>"
    text = link_sections(link_pages(text, page))
    heading = f'<p class="page">{NAMES[page]}</p>'
    return frame(NAMES[page], heading + text, contents, version, page), about, version


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: html_manual.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOP / "packaging" / "manual.css", folder)
    listed = []
    for page in PAGES:
        text, about, version = convert(page)
        (folder / f"{page}.html").write_text(text, encoding="utf-8")
        listed.append(f'<dt><a href="{page}.html">{NAMES[page]}</a></dt><dd>{about}</dd>')
    index = '<p class="page">rlock</p><h1>The manual</h1><dl>' + "".join(listed) + "</dl>"
    (folder / "index.html").write_text(frame("rlock, the Redis lock runner: the manual", index, "", version), encoding="utf-8")


if __name__ == "__main__":
    main()
