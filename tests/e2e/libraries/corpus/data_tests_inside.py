import pathlib
import pytest
pathlib.Path("test_sum.py").write_text("def test_sum():\n    assert sum([1, 2]) == 3\n")
assert pytest.main(["-q", "-p", "no:cacheprovider", "test_sum.py"]) == 0
pathlib.Path("test_sum.py").unlink()
