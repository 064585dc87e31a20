import holidays
assert "2025-12-25" in holidays.country_holidays("DE")
