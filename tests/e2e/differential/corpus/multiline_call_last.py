def f(*a, **k):
    raise ValueError(
        a,
        k)

f(
    1,
    x=2,
    *[3],
)
