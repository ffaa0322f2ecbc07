"""Every message of the package in one list, read by a person whenever it changes."""

import re

from tools.make_messages import MESSAGES, messages

UNPLAIN = re.compile(r"\b(no such thing|mends?|mended|whatever|anew|for ever|nobody|told)\b")


def test_the_list_of_messages_is_that_of_the_code():
    assert MESSAGES.read_text() == messages(), "run: make docs, and read what changed in tests/data/messages.txt"


def test_messages_are_plain_english():
    lines = [re.sub(r"\{.*?\}", "{}", line) for line in messages().splitlines()]
    assert not [line for line in lines if UNPLAIN.search(line)]
