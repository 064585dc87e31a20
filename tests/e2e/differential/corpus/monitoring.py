import sys
m = sys.monitoring
print([m.get_tool(i) for i in range(6)], [m.get_events(i) for i in range(6) if m.get_tool(i)])
m.use_tool_id(5, "mine"); seen = []
m.register_callback(5, m.events.PY_START, lambda c, o: seen.append(c.co_name))
m.set_events(5, m.events.PY_START)
(lambda: 0)()
m.set_events(5, 0)
print(seen)
