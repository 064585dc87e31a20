import arrow
import dateparser
from dateutil.relativedelta import relativedelta
from dateutil.rrule import MONTHLY, rrule
import datetime as dt
assert dateparser.parse("12 mars 2025", languages=["fr"]).month == 3
assert arrow.get("2025-01-31T10:00:00Z").shift(months=1).format("YYYY-MM-DD") == "2025-02-28"
assert dt.date(2024, 2, 29) + relativedelta(years=1) == dt.date(2025, 2, 28)
assert len(list(rrule(MONTHLY, count=3, dtstart=dt.datetime(2025, 1, 1)))) == 3
