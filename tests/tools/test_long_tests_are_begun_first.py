"""Several workers begin with the long tests, and leave the others where their neighbours are."""

from __future__ import annotations

import pytest

from kit.worksteal_order import dealt

CASES = {
    "every row begins with its share": ("abcDefgHijKl", 3, ("Dabc", "Hefg", "Kijl")),
    "one hand has them all": ("aBcD", 1, ("BDac",)),
    "rows of unequal length": ("aBcdE", 2, ("Ba", "Ecd")),
    "more hands than long ones": ("abcDef", 3, ("Da", "bc", "ef")),
    "a row with nothing but long ones": ("ABCde", 2, ("AC", "Bde")),
    "no test at all": ("", 4, ("", "", "", "")),
}


@pytest.mark.parametrize(("tests", "hands", "rows"), CASES.values(), ids=CASES.keys())
def test_each_hand_is_dealt_its_row(tests: str, hands: int, rows: tuple[str, ...]) -> None:
    assert "".join(dealt(tests, hands, str.isupper)) == "".join(rows)
