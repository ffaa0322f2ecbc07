"""The error tree: each is one of ours and one of Python's, and says what to do."""

import pytest

from wattribute import errors


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (errors.NotFoundError("x"), FileNotFoundError),
        (errors.FormatError("f", "is cut", 12), ValueError),
        (errors.UnsupportedError("x"), NotImplementedError),
        (errors.OptionError("x"), ValueError),
        (errors.NoDataError("x"), LookupError),
        (errors.MeterError("x"), OSError),
        (errors.OutputError("x"), OSError),
        (errors.ClusterError("x"), ConnectionError),
        (errors.MissingExtraError("plot", "altair"), ImportError),
    ],
)
def test_each_error_is_also_the_standard_one(ours, theirs):
    assert isinstance(ours, errors.WattributeError)
    assert isinstance(ours, theirs)


def test_the_tree_is_drawn_in_full():
    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert all(name in errors.__doc__ for name in classes)


def test_messages_say_where_and_what_to_do():
    assert str(errors.FormatError("a.evt", "the record is cut", 77)) == "a.evt at byte 77: the record is cut"
    assert str(errors.NoDataError("no energy metric")) == "no energy metric"
    assert "pip install 'wattribute[plot]'" in str(errors.MissingExtraError("plot", "altair"))
    assert "did you mean 'even'" in str(errors.OptionError.unknown("share", "evne", ["even", "process"]))
    assert "known: even, process" in str(errors.OptionError.unknown("share", "zzz", ["process", "even"]))
