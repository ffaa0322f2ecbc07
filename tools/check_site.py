"""``check_site.py FOLDER``: the built docs site in Chromium, from the folder and without a network.

Every page opens without an error, fits a phone, and has no broken link or picture; search finds; dark is dark.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

from playwright.sync_api import Browser, Page, sync_playwright

PHONE = {"width": 375, "height": 740}


def links(page: Page) -> list[str]:
    return list(page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)"))


def target_problem(link: str, site: Path, anchors: dict[Path, set[str]]) -> str | None:
    """What is wrong with a link into the site; links to elsewhere are not followed."""
    parts = urlparse(link)
    if parts.scheme != "file":
        return None
    path = Path(unquote(parts.path))
    path = path / "index.html" if path.is_dir() else path
    if not path.is_file() or not path.is_relative_to(site):
        return f"{link} is not there"
    if parts.fragment and path in anchors and unquote(parts.fragment) not in anchors[path]:
        return f"{link}: no such heading"
    return None


def page_problems(page: Page, path: Path) -> list[str]:
    """What a page shows when it is opened: errors, pictures that fail, markup, and wider content than a phone."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    broken = page.eval_on_selector_all(
        "img", "all => all.filter(i => i.complete && !i.naturalWidth).map(i => i.getAttribute('src'))"
    )
    errors += [f"picture {source} does not load" for source in broken]
    errors += [f"{role} is markup" for role in re.findall(r":(?:class|func|meth|mod|attr):", page.inner_text("body"))]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        errors.append(f"{wide} pixels wider than a phone")
    return [f"{path.name}: {error}" for error in errors]


def search_problems(browser: Browser, site: Path) -> list[str]:
    """Search works from the folder, without a server."""
    page = browser.new_page(viewport={"width": 1400, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").press_sequentially("idle")  # the page listens to keys
    page.wait_for_selector(".md-search-result__item a", timeout=0)
    hits = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(a => a.href)")
    page.close()
    return [] if any("attribution.html" in hit for hit in hits) else [f"search for 'idle' gives {hits[:5]}"]


def dark_problems(browser: Browser, site: Path) -> list[str]:
    """A reader whose system is dark gets dark pages."""
    background = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    problems = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto((site / "index.html").as_uri())
        page.wait_for_function("document.body.dataset.mdColorScheme !== undefined")
        if (sum(page.evaluate(background)) < 3 * 128) != (scheme == "dark"):
            problems.append(f"{scheme}: background is {page.evaluate(background)}")
        page.close()
    return problems


def check(site: Path) -> list[str]:
    """All problems of a site."""
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport=PHONE, offline=True)  # type: ignore[arg-type]
        page = context.new_page()
        problems: list[str] = []
        context.on("request", lambda asked: asked.url.startswith("http") and problems.append(f"fetches {asked.url}"))
        anchors: dict[Path, set[str]] = {}
        found: set[tuple[str, str]] = set()
        for path in pages:
            problems += page_problems(page, path)
            anchors[path] = {"", *page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")}
            found |= {(path.name, link) for link in links(page)}
        for name, link in sorted(found):
            if problem := target_problem(link, site, anchors):
                problems.append(f"{name}: {problem}")
        problems += search_problems(browser, site) + dark_problems(browser, site)
        browser.close()
    print(f"{len(pages)} pages, {len(found)} links, {len(problems)} problems")
    return problems


if __name__ == "__main__":
    if problems := check(Path(sys.argv[1]).resolve()):
        sys.exit("\n".join(problems))
