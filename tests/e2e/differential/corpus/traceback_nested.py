def outer(n):
    return inner(n) + 1


def inner(n):
    return {"a": [1, 2, 3]}["a"][n] / (n - 3)


def main():
    outer(0)
    outer(3)


if __name__ == "__main__":
    main()
