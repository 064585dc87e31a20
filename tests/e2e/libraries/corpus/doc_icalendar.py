# expects artifacts=meeting.ics
from datetime import datetime, timedelta, timezone
from icalendar import Calendar, Event
calendar, event = Calendar(), Event()
event.add("summary", "Planning")
event.add("dtstart", datetime(2026, 1, 5, 9, tzinfo=timezone.utc))
event.add("dtend", datetime(2026, 1, 5, 9, tzinfo=timezone.utc) + timedelta(hours=1))
calendar.add_component(event)
with open("meeting.ics", "wb") as f:
    f.write(calendar.to_ical())
