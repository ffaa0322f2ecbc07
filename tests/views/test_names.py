"""Labels: readable, within their width, and never two alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.views import names

DOUBLE = "_Z12heavy_kernelPdi"  # heavy_kernel(double*, int)
NESTED = "_ZN2ns5outerIiLi3EE5innerEv"  # ns::outer<int, 3>::inner()


@pytest.mark.parametrize(
    ("name", "full", "plain"),
    [
        (DOUBLE, "heavy_kernel(double*, int)", "heavy_kernel"),
        (DOUBLE + ".kd", "heavy_kernel(double*, int)", "heavy_kernel"),
        (NESTED, "ns::outer<int, 3>::inner()", "ns::outer<…>::inner"),
        ("void f<int>(g<2>*)", "void f<int>(g<2>*)", "f<…>"),
        ("void stencil<double, 64>(double*)", "void stencil<double, 64>(double*)", "stencil<…>"),
        ("void f<(4 > 3), 64>(int)", "void f<(4 > 3), 64>(int)", "f<…>"),
        ("void f<64>", "void f<64>", "f<…>"),
        ("int main(int, char**)", "int main(int, char**)", "main"),
        ("bool operator<(A, B)", "bool operator<(A, B)", "bool operator<"),
        ("(anonymous namespace)::f(int) const", "(anonymous namespace)::f(int) const", "{anonymous}::f"),
        ("<module>", "<module>", "<module>"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("!$omp parallel @a.c:3", "!$omp parallel @a.c:3", "!$omp parallel @a.c:3"),
        ("a->b", "a->b", "a->b"),
        ("other (3 frames)", "other (3 frames)", "other (3 frames)"),
        ("f<int", "f<int", "f<int"),
        ("内核计算", "内核计算", "内核计算"),
        ("", "(no name)", "(no name)"),
        ("bad\x00\x1b[31m\ud800\nname", "bad\ufffd\ufffd[31m\ufffd name", "bad\ufffd\ufffd[31m\ufffd name"),
        ("_Znot_mangled", "_Znot_mangled", "_Znot_mangled"),
    ],
)
def test_a_name_is_read_in_full_and_in_short(name, full, plain):
    assert names.full(name) == full
    assert names.plain(name) == plain


def test_without_a_c_plus_plus_runtime_the_identifiers_remain(monkeypatch):
    monkeypatch.setattr(names, "_runtime", lambda: None)
    assert names._demangle(NESTED) == "ns::outer"
    assert names._demangle(DOUBLE) == "heavy_kernel"


def test_parameters_appear_only_where_labels_would_collide():
    assert names.labels(["f(int)", "g(int)"]) == {"f(int)": "f", "g(int)": "g"}
    assert names.labels(["f(int)", "f(double)"]) == {"f(int)": "f(int)", "f(double)": "f(double)"}
    assert names.labels(["void f<int>(int)", "void f<long>(int)"])["void f<int>(int)"] == "f<int>"
    kernels = ["void k<double, 64>(int)", "void k<double, 3>(int)", "std::pair<int, long> k<g<1, 2>, 3>(int)"]
    assert list(names.labels(kernels).values()) == ["k<double, 64>", "k<double, 3>", "k<g<1, 2>, 3>"]


def test_names_that_differ_in_the_middle_show_where():
    alike = [
        f"Cijk_Ailk_Bljk_DB_MT64x64x16_{i}_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1_AF1EM1" for i in ("MI16", "MI32", "MI4")
    ]
    short = names.labels(alike, 30)
    assert len(set(short.values())) == 3
    assert all(key in label for key, label in zip(("MI16", "MI32", "MI4"), short.values(), strict=True))


def test_names_that_differ_in_two_places_show_both():
    filler = "_APM1_ABV0_ACED0_AF0EM1_AF1EM1_AMAS0_ASE_ASGT_ASLT_ASM_ASAE01"
    alike = [f"Cijk_Ailk_Bljk_MT{size}{filler}_PLR{depth}{filler}" for size in (64, 128) for depth in (1, 3)]
    short = names.labels(alike, 30).values()
    assert list(short) == [
        "Cijk_Ailk_Bljk_…MT64 PLR1",
        "Cijk_Ailk_Bljk_…MT64 PLR3",
        "Cijk_Ailk_Bljk_…MT128 PLR1",
        "Cijk_Ailk_Bljk_…MT128 PLR3",
    ]


def test_names_that_do_not_differ_get_numbers():
    alike = ["", " ", "gemm<Tile<64, 3>, P<int, A<8>>>(int)", "gemm<Tile<64, 4>, P<int, A<8>>>(int)"]
    assert list(names.labels(alike, 18).values()) == [
        "(no name)", "(no name) ·2", "gemm<Tile<64, …3", "gemm<Tile<64, …4",
    ]  # fmt: skip


def test_shortening_keeps_both_ends():
    assert names.shorten("abcdefghij", 7) == "abc…hij"
    assert names.shorten("内核计算函数", 7) == "内…数" or names.columns(names.shorten("内核计算函数", 7)) <= 7


@given(st.lists(st.text(max_size=80), max_size=30), st.integers(12, 60))
def test_labels_fit_and_are_distinct(given_names, width):
    short = names.labels(given_names, width)
    assert set(short) == set(given_names)
    assert len(set(short.values())) == len(short)
    assert all(names.columns(label) <= width for label in short.values())
    for label in short.values():
        label.encode()
        assert not any(ord(c) < 32 for c in label)
