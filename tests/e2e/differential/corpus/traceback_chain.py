try:
    try:
        1 / 0
    except ZeroDivisionError as e:
        raise KeyError("inner") from e
except KeyError:
    raise RuntimeError("outer")
