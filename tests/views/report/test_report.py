"""The report: the numbers of attribution, as HTML, Markdown and PDF, whatever users called things."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import wattribute
from tests.views.stories import HOSTILE, ranks, streams
from wattribute import archive
from wattribute.errors import OptionError, OutputError
from wattribute.model import SpanTable
from wattribute.sessions.summary import summarise
from wattribute.testing.simulation import Simulation, Wave
from wattribute.views.console_run import bill_line
from wattribute.views.report import write_report
from wattribute.views.report.html import html
from wattribute.views.report.markdown import markdown, plain
from wattribute.views.report.story import story
from wattribute.views.report.versus import versus


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.words, self.sources = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_data(self, data):
        self.words.append(data)


def parsed(path):
    page = Tags()
    page.feed(path.read_text())
    return page


def test_the_story_has_the_numbers_of_attribution():
    recording = ranks(hosts=2, depth=3)
    devices = wattribute.attribute(recording).devices
    told = story(recording)
    numbers = dict(told.numbers)
    from wattribute.views.numbers import si

    assert numbers["measured"].startswith(si(devices.get_column("measured_j").sum(), "J"))
    assert numbers["idle"].startswith(si(devices.get_column("idle_j").sum(), "J"))
    assert numbers["time"] == "1.00 s"
    assert "(world average)" in numbers["emissions"]
    assert [section.title for section in told.sections] == [
        "Where the energy went", "When", "Who used it", "By process", "Call paths", "Sensors", "How we know",
    ]  # fmt: skip


def test_the_time_of_a_run_is_that_of_its_command():
    recording = ranks()
    run = {"start_ticks": 0, "end_ticks": recording.clock.ticks(0.5)}
    assert dict(story(replace(recording, metadata={"run": run})).numbers)["time"] == "500 ms"


@pytest.mark.parametrize("estimated", [False, True])
def test_a_story_on_a_shared_machine_says_whose_it_was(estimated):
    machine = Simulation(length_s=10)
    cpu = machine.device("package 0").counter(period_s=0.02)
    machine.thread(cpu, [("work", 0.0, 10.0, 30.0)])
    machine.tenant(cpu, "neighbour", Wave(30.0), cores=1.0)
    recording = machine.run().recording
    recording = replace(recording, signals=tuple(replace(one, estimated=estimated) for one in recording.signals))
    (section,) = (section for section in story(recording).sections if section.title == "Whose it was")
    whole = "600 J estimated" if estimated else "600 J"
    assert section.sentences == [f"{whole} on this machine: 300 J this command, 300 J other processes."]
    assert bill_line(summarise(recording, carbon=False)).startswith(f"{whole} on this machine: 300 J this")
    assert story(recording).lead.endswith("300 J of it went to this command.")  # and nothing was idle
    assert section.picture.name == "bill"


def test_zone_and_selection_reach_the_story():
    told = story(ranks(depth=2), zone="FR", begin=0.0, end=0.5)
    assert dict(told.numbers)["time"] == "500 ms"
    assert "world" not in dict(told.numbers)["emissions"]
    assert any("France" in sentence for section in told.sections for sentence in section.sentences)


def test_html_is_one_file_without_script_or_network(tmp_path):
    page = parsed(write_report(streams(list(HOSTILE)), tmp_path / "report.html"))
    assert "script" not in page.tags
    assert page.sources
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    words = " ".join(page.words)
    assert "<script>alert(1)</script>" in words
    assert "内核计算函数" in words
    for source in page.sources:
        ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))


def test_markdown_keeps_its_pictures_beside_it(tmp_path):
    target = write_report(ranks(depth=3), tmp_path / "my report.md")
    text = target.read_text()
    pictures = re.findall(r"^!\[.*\]\((.*)\)$", text, re.MULTILINE)
    assert pictures == [f"my%20report_files/{name}.svg" for name in ("books", "power", "heatmap", "flame")]
    for name in pictures:
        assert (tmp_path / name.replace("%20", " ")).read_text().startswith("<svg")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert any("MPI\\_Barrier" in line and "waiting" in line for line in table)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_takes_no_markup_from_names(name):
    from markdown_it import MarkdownIt

    rendered = MarkdownIt("commonmark").enable("table").render(f"| a |\n| --- |\n| {plain(name)} |\n\n{plain(name)}\n")
    assert "<script" not in rendered
    assert "<a " not in rendered
    assert "<em>" not in rendered


def test_pdf_has_pages_of_text_that_can_be_searched(tmp_path):
    pypdf = pytest.importorskip("pypdf")
    book = pypdf.PdfReader(write_report(ranks(depth=3), tmp_path / "report.pdf"))
    assert 1 < len(book.pages) < 5
    words = " ".join(page.extract_text() for page in book.pages)
    for wanted in ("Who used it", "MPI_Allreduce", "package_energy", "How we know"):
        assert wanted in words
    assert book.metadata.title == "ranks: whose joules?"
    assert all((round(page.mediabox.width), round(page.mediabox.height)) == (595, 842) for page in book.pages)


def test_hostile_names_make_a_pdf_too(tmp_path):
    assert write_report(streams(list(HOSTILE)), tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_recording_of_power_alone_has_a_story():
    words = story(replace(ranks(), spans=SpanTable({})))
    assert dict(words.numbers)["measured"] == dict(story(ranks()).numbers)["measured"]
    when = next(section for section in words.sections if section.title == "When")
    assert when.picture is not None


def test_mistakes_are_told(tmp_path):
    with pytest.raises(OptionError, match=r"unknown ending of the output file '\.docx'"):
        write_report(ranks(), tmp_path / "report.docx")
    with pytest.raises(OutputError, match="does not exist"):
        write_report(streams(["a"]), tmp_path / "nowhere" / "report.html")
    with pytest.raises(OutputError, match="does not exist"):
        write_report(streams(["a"]), tmp_path / "nowhere" / "report.md")


@pytest.fixture(scope="module")
def partial_story(shared):
    """Of a real trace without eight of its files."""
    return story(shared / "traces" / "frontier-hpl-partial")


def test_real_traces_have_their_story(partial_story):
    assert "By process" in [section.title for section in partial_story.sections]
    noticed = next(section for section in partial_story.sections if section.title == "Noticed")
    assert any("the file is not there" in sentence for sentence in noticed.sentences)
    assert dict(partial_story.numbers)["measured"] == "84.8 kJ ± 5.4"  # 6.25 % of rocm_smi's energy counter
    assert partial_story.missing.startswith("15.3 M of 16.1 M events are missing: 8 files could not be read")
    assert "8 devices that measured nothing: not drawn." in partial_story.sections[0].picture.light


def test_what_is_missing_stands_before_every_number(partial_story, tmp_path):
    without_pictures = replace(
        partial_story, sections=[replace(section, picture=None) for section in partial_story.sections]
    )
    for text in (markdown(without_pictures, tmp_path, "files"), html(without_pictures).partition("<body>")[2]):
        assert 0 < text.index("events are missing") < text.index(" kJ")


def test_findings_say_their_view_where_there_are_two(shared):
    told = story(shared / "traces" / "simple-mi300")
    assert "heavy_kernel used more than any other: 1.84 kJ, 31 % of it" in told.lead
    paths = next(section for section in told.sections if section.title == "Call paths")
    assert paths.picture.title == "hipEventSynchronize: host threads were in it for 92 % of the GPU energy"
    assert "never added" in paths.sentences[0]
    how = next(section for section in told.sections if section.title == "How we know")
    assert how.sentences[0].startswith("Energy of kernels.")  # the sensors of the host are not counted


def test_an_estimate_has_the_error_of_its_model():
    made = ranks(depth=2)
    signals = tuple(replace(signal, estimated=True, gain_error=0.5) for signal in made.signals)
    told = story(replace(made, signals=signals))
    assert re.fullmatch(r"\d+ J ± \d+", dict(told.numbers)["estimated"])
    sensors = next(section for section in told.sections if section.title == "Sensors")
    assert sensors.table.rows[0][-1] == dict(told.numbers)["estimated"]


def test_one_run_against_another(command, tmp_path):
    told = versus(ranks(power_w=200.0), ranks(power_w=300.0))
    assert dict(told.numbers)["B against A"].startswith("+50.0 %")
    assert [section.title for section in told.sections][:2] == ["Both runs", "What changed"]
    changes = {row[0]: row for row in told.sections[1].table.rows}
    assert changes["MPI_Allreduce"][3].startswith("+50.0 %")
    both = {row[0]: row[1:] for row in told.sections[0].table.rows}
    assert both["time"] == ["1.00 s", "1.00 s"]
    for name, watts in (("a", 200.0), ("b", 300.0)):
        archive.save(ranks(power_w=watts), tmp_path / f"{name}.watt")
    assert command("report", "a.watt", "--vs", "b.watt", "-o", "report.md", cwd=tmp_path).returncode == 0
    text = (tmp_path / "report.md").read_text()
    assert "report_files/power-a.svg" in text
    assert "report_files/power-b.svg" in text


def test_a_comparison_of_parts_says_so(shared):
    told = versus(shared / "traces" / "simple-mi300", shared / "traces" / "frontier-hpl-partial")
    assert "A, devices that both metered" in dict(told.numbers)
    assert told.missing.startswith("B: 15.3 M of 16.1 M events are missing")


def test_a_dash_is_standard_output(capsysbinary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_report(ranks(), "-")
    assert capsysbinary.readouterr().out.startswith(b"<!DOCTYPE html>")
    write_report(ranks(), "-", format="pdf")
    assert capsysbinary.readouterr().out.startswith(b"%PDF")
    with pytest.raises(OptionError, match="pictures beside it"):
        write_report(ranks(), "-", format="md")
    assert list(tmp_path.iterdir()) == []
