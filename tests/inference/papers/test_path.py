"""The path that JCFO's and FS-SKLR's algorithms keep, and how a long one is thinned."""

from ardvark.inference.papers.path import Path


def test_a_thinned_path_keeps_a_state_when_5_percent_have_gone():
    path = Path()
    sizes = [(100, 9), (96, 9), (95, 9), (94, 9), (94, 8), (90, 8), (89, 8), (0, 8), (0, 8)]
    due = [path.due(*one) for one in sizes]
    assert due == [True, False, False, True, True, False, True, True, False]
    assert path.details() == ({}, {})
