"""The docs site builds without a warning, and Chromium finds nothing wrong with it: links, search, dark, phone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, need

BROKEN = """<html><body style="background: white"><div style="width: 900px">wide</div><img src="nowhere.png">
:func:<code>markup</code>
<a href="other.html">gone</a> <a href="#nowhere">gone</a> <script>throw new Error("failed")</script></body></html>"""


@pytest.mark.slow
def test_the_site(tmp_path):
    from tools.check_site import check

    need("chromium")
    pytest.importorskip("material", reason="no MkDocs Material for Python 3.10")
    command = [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert check(tmp_path) == []


@pytest.mark.slow
def test_what_is_wrong_with_a_page_is_said(tmp_path):
    from playwright.sync_api import sync_playwright

    from tools.check_site import PHONE, page_problems, target_problem

    chromium = need("chromium")
    path = tmp_path / "page.html"
    path.write_text(BROKEN)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        problems = page_problems(browser.new_page(viewport=PHONE), path)
        browser.close()
    assert len(problems) == 4
    assert "is not there" in target_problem((tmp_path / "other.html").as_uri(), tmp_path, {})
    assert "no such heading" in target_problem(f"{path.as_uri()}#nowhere", tmp_path, {path: {""}})
    assert target_problem("https://example.org/x", tmp_path, {}) is None
