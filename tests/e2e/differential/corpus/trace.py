import sys
lines = []
def tracer(frame, event, arg):
    lines.append((event, frame.f_code.co_name, frame.f_lineno))
    return tracer
def g(a):
    b = a + 1
    return b
sys.settrace(tracer)
g(1)
sys.settrace(None)
print(lines)
sys.setprofile(lambda *a: lines.append(a[1]))
g(2)
sys.setprofile(None)
print(lines[-6:])
