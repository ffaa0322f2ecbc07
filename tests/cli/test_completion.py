"""``--print-completion``: scripts that the shells accept, and that complete verbs, options and choices."""

import shutil
import subprocess

import pytest

from wattribute.cli import SHELLS, VERBS
from wattribute.cli.completion import completion


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_the_script(tmp_path, shell):
    script = completion(shell)
    for verb in VERBS:
        assert verb in script
    assert "--label-by" in script or "label-by" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tmp_path / "script").write_text(script)
    checked = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def completed(script, *words):
    """What bash offers for the last word."""
    lines = [script, f"COMP_WORDS=({' '.join(map(repr, words))}) COMP_CWORD={len(words) - 1}"]
    lines += ["_shtab_wattribute", 'printf "%s\\n" "${COMPREPLY[@]}"']
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True)
    return done.stdout.split()


def test_bash_completes_verbs_options_and_choices():
    script = completion("bash")
    assert completed(script, "wattribute", "att") == ["attribute"]
    assert completed(script, "wattribute", "attribute", "--exc") == ["--exclude-frame"]
    assert completed(script, "wattribute", "attribute", "--share", "pro") == ["process"]
    assert "--to" not in completed(script, "wattribute", "attribute", "--t")  # hidden


def test_the_command_line_prints_it(command):
    done = command("--print-completion", "bash")
    assert (done.stdout, done.stderr) == (completion("bash") + "\n", "")
    wrong = command("--print-completion", "bsh")
    assert wrong.returncode == 1
    assert "did you mean 'bash'" in wrong.stderr
