"""Options of the command line: from the fields of Question and ReadOptions, with one meaning across verbs."""

import shlex
from argparse import SUPPRESS
from dataclasses import fields, make_dataclass

import pytest

from wattribute.cli import VERBS, verb_parser
from wattribute.cli.arguments import question_from, reading_from
from wattribute.errors import OptionError
from wattribute.model import question as questions

ATTRIBUTING = ("attribute", "compare", "plot", "report", "export", "sql", "view")
READING = (*ATTRIBUTING, "calibrate", "info", "convert", "carbon", "merge")
CHOSEN_BY_VERB = {
    **{verb: {"by", "statistics"} for verb in ("plot", "report", "view")},
    "compare": {"statistics"},
}
MINIMAL = {
    "attribute": "x",
    "compare": "a --vs b",
    "plot": "power x -o p.png",
    "report": "x -o r.html",
    "export": "x --to json",
    "sql": "x query",
    "view": "x",
    "info": "x",
    "convert": "x y",
    "carbon": "x",
    "merge": "x y -o z",
}


def parse(verb, line):
    return verb_parser(verb).parse(shlex.split(line))


def shown(verb):
    """Option → its action, without hidden ones."""
    actions = verb_parser(verb)._actions
    return {name: action for action in actions if action.help != SUPPRESS for name in action.option_strings}


def flag(field):
    return field.metadata["flag"] or f"--{field.name.replace('_', '-')}"


def is_option(field):
    return field.metadata["kind"] is not None or isinstance(field.default, bool)


@pytest.mark.parametrize("verb", ATTRIBUTING)
def test_every_field_of_a_question_is_an_option_of_every_verb_that_attributes(verb):
    options = shown(verb)
    for field in filter(is_option, fields(questions.Question)):
        assert (flag(field) in options) == (field.name not in CHOSEN_BY_VERB.get(verb, ())), field.name
    assert "--engine" in options


@pytest.mark.parametrize("verb", VERBS)
def test_every_field_of_read_options_is_an_option_of_every_verb_that_reads(verb):
    options = shown(verb)
    for field in filter(is_option, fields(questions.ReadOptions)):
        assert (flag(field) in options) == (verb in READING), field.name


@pytest.mark.parametrize("verb", ATTRIBUTING)
def test_a_new_field_appears_without_a_change_of_the_command_line(monkeypatch, verb):
    new = questions.option("red", "Colour of the joules; 5 % are blue.", group="What", choices=("red", "blue"))
    extended = make_dataclass("Question", [("tint", str, new)], bases=(questions.Question,), frozen=True)
    monkeypatch.setattr(questions, "Question", extended)
    parser = verb_parser(verb)
    text = parser.format_help()
    assert "  --tint TINT " in text[text.index("\nWhat:") : text.index("\nWhich part:")]
    arguments = parser.parse([*MINIMAL[verb].split(), "--tint", "blue"])
    assert question_from(arguments)["tint"] == "blue"
    assert "tint" not in question_from(parser.parse(MINIMAL[verb].split()))


def test_only_what_was_said_is_passed_on():
    assert question_from(parse("attribute", "x")) == {}
    line = "x --by frame --of kernels,copies --of host --no-bounds --statistics --from 1 --until 2 --map 'a -> b'"
    line += " --signals p.csv --signals q.csv --offset -3.5 --reader otf2 --metric-kind e=counter:uJ --threads 2"
    assert question_from(parse("attribute", f"{line} --engine dask --format json")) == {
        "by": "frame",
        "of": ["kernels,copies", "host"],
        "bounds": False,
        "statistics": True,
        "begin": "1",
        "end": "2",
        "maps": ["a -> b"],
        "signals": ["p.csv", "q.csv"],
        "offset": -3.5,
        "format": "otf2",  # of --reader: how the recording is read, not how rows are printed
        "metric_kinds": ["e=counter:uJ"],
        "threads": 2,
        "engine": "dask",
    }
    assert reading_from(parse("info", "x --threads 3 --format json")) == {"threads": 3}
    assert question_from(parse("compare", "a --vs b")) == {"by": ("frame",)}


@pytest.mark.parametrize("verb", ATTRIBUTING)
def test_the_end_of_a_time_is_until(verb):
    assert question_from(parse(verb, f"{MINIMAL[verb]} --until 2"))["end"] == "2"
    assert ("--to" in shown(verb)) == (verb == "export")
    if verb != "export":
        assert question_from(parse(verb, f"{MINIMAL[verb]} --to 2"))["end"] == "2"  # the old spelling


def test_an_option_means_one_thing():
    by = {action.dest for verb in VERBS for name, action in shown(verb).items() if name == "--by"}
    assert by == {"Question.by"}
    intervals = {action.help for verb in VERBS for name, action in shown(verb).items() if name == "--interval"}
    assert {text.partition(";")[0] for text in intervals} == {"Seconds between readings"}
    hosts = {action.dest for verb in VERBS for name, action in shown(verb).items() if name == "--host"}
    assert hosts == {"Question.host"}
    assert [verb for verb in VERBS if "--to" in shown(verb)] == ["export"]


@pytest.mark.parametrize(
    ("verb", "old", "new", "dest"),
    [
        ("summary", "runs --by mode --by place", "runs --label-by mode --label-by place", "label_by"),
        ("plot", "history r -o x.png --by mode", "history r -o x.png --label-by mode", "label_by"),
        ("profile", "--interval 0.01 x.py", "--stack-interval 0.01 x.py", "stack_interval"),
    ],
)
def test_old_spellings_still_work(verb, old, new, dest):
    assert getattr(parse(verb, old), dest) == getattr(parse(verb, new), dest)
    assert getattr(parse(verb, new), dest)


@pytest.mark.parametrize(
    ("line", "argv", "given"),
    [
        ("-- true", ["--", "true"], {}),
        ("true", ["true"], {}),
        ("sleep 1 --output x", ["sleep", "1", "--output", "x"], {"output": None}),
        ("--output=x.watt --interval 0.5 --repeat 3 -- a b c", ["--", "a", "b", "c"], {"interval": 0.5, "repeat": 3}),
        ("--meters nvml --meters=rapl:/x=y -q -- x --help", ["--", "x", "--help"], {"meters": ["nvml", "rapl:/x=y"]}),
        ("--no-live --zone FR -- x -- y", ["--", "x", "--", "y"], {"no_live": True, "zone": "FR"}),
        ("-qo x y -o z", ["y", "-o", "z"], {"quiet": True}),
        ("--score= -- x", ["--", "x"], {"score": ""}),
        ("--cooldown 1.5 x --repat -o", ["x", "--repat", "-o"], {"cooldown": 1.5}),
        ("--compare a --- b", ["a", "---", "b"], {"compare": True}),
        ("", [], {}),
    ],
)
def test_run_ends_its_options_at_the_command(line, argv, given):
    arguments = parse("run", line)
    assert arguments.argv == argv
    assert {name: getattr(arguments, name) for name in given} == given


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x.py -o y --mode z", ["x.py", "-o", "y", "--mode", "z"]),
        ("-q -- x.py -q", ["x.py", "-q"]),
        ("--tree -m timeit -n 1 --tree", ["-m", "timeit", "-n", "1", "--tree"]),
        ("-q -o m.watt -mtimeit -n 1 --tree", ["-m", "timeit", "-n", "1", "--tree"]),
        ("x.py -mtimeit", ["x.py", "-mtimeit"]),
        ("-- x.py -cx", ["x.py", "-cx"]),
        ("-m package -- -x", ["-m", "package", "--", "-x"]),
        ("-c 'print(1)' -m", ["-c", "print(1)", "-m"]),
        ("x.py -m y -c z", ["x.py", "-m", "y", "-c", "z"]),
    ],
)
def test_profile_takes_programs_as_python_does(line, words):
    from wattribute.cli.profile import _program

    assert _program(parse("profile", line)) == words


@pytest.mark.parametrize(
    ("verb", "line", "says"),
    [
        ("run", "--repat 3 -- true", "unknown option '--repat'; did you mean '--repeat'"),
        ("run", "--repeat soon -- true", "--repeat"),
        ("run", "--repeat", "expected one argument"),
        ("run", "--warm-ups -1 -- true", "must be at least 0, not -1"),
        ("plot", "power x --ouput y.png", "unknown option '--ouput'; did you mean '--output'"),  # why -o is missing
        ("plot", "power x", "-o/--output"),
        ("plot", "power x -o y.png --scale 11", "must be 0.1 to 10, not 11"),
        ("attribute", "x --top 0", "must be at least 1"),
        ("attribute", "x --thread 2", "did you mean '--threads'"),  # never a guess from the beginning of a name
        ("zones", "a b", "unexpected argument 'b'"),
        ("compare", "x", "--vs"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(capsys, verb, line, says):
    with pytest.raises(SystemExit) as left:
        parse(verb, line)
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert says in err
    assert err.startswith("wattribute: ")
    assert err.endswith(f"(see: wattribute {verb} --help)\n")
    assert err.count("\n") == 1


def test_a_wrong_choice_suggests_the_right_one():
    with pytest.raises(OptionError, match="unknown --dialect 'duckbd'; did you mean 'duckdb'"):
        parse("sql", "x y --dialect duckbd")
    with pytest.raises(OptionError, match="unknown --format 'prquet'; did you mean 'parquet'"):
        parse("attribute", "x --format prquet")


def test_arguments_and_options_in_any_order():
    first = parse("attribute", "a --top 3 b --by frame c")
    assert (first.paths, first.top) == (["a", "b", "c"], 3)
    chart = parse("plot", "-o x.png power --top 3 a --theme dark b")
    assert (chart.kind, chart.paths, chart.theme) == ("power", ["a", "b"], "dark")
    assert parse("monitor", "--web --format json").web == "127.0.0.1:0"
    assert parse("monitor", "--web :80").web == ":80"
