"""``%%wattribute`` in a real IPython shell."""

import pytest

InteractiveShell = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython is not installed"
).InteractiveShell


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("WATTRIBUTE_OFFLINE", "1")
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.run_line_magic("load_ext", "wattribute")
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def meter(tmp_path):
    path = tmp_path / "meter.csv"
    path.write_text("time_s,package 0:energy_j\n" + "\n".join(f"{i / 100},{i}" for i in range(3000)))
    return f"replay:{path}"


def test_a_cell(shell, meter, capsys):
    cell = "import time, wattribute\nwith wattribute.region('part'):\n    time.sleep(0.2)\nanswer = 42"
    shell.run_cell_magic("wattribute", f"--zone FR --meters {meter} --into run", cell)
    out = capsys.readouterr().out
    assert "cell" in out
    assert "part" in out
    assert "France (FR)" in out
    assert shell.user_ns["answer"] == 42
    assert set(shell.user_ns["run"].frames.name) == {"cell", "part"}


def test_an_error_in_the_cell_is_the_users(shell, meter, capsys):
    shell.run_cell_magic("wattribute", f"--meters {meter}", "1 / 0")
    out = capsys.readouterr().out
    assert "ZeroDivisionError" in out
    assert "World average" in out


@pytest.mark.parametrize("line", ["--zone Atlantis", "--nonsense", "--into 1x", "--meters nosuchmeter"])
def test_wrong_options_are_usage_errors(shell, line):
    from IPython.core.error import UsageError

    with pytest.raises(UsageError):
        shell.run_cell_magic("wattribute", line, "pass")
