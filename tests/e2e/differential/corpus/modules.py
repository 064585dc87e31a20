import sys
main = sys.modules["__main__"]
print(main.__dict__ is globals(), main.__file__)
print([m for m in ("json", "re", "ast", "asyncio", "typing", "inspect", "numpy", "matplotlib") if m in sys.modules])
print(sys.path)
