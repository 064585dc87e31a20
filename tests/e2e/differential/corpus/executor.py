from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def f(x):
    if x == 2: raise ValueError(x)
    return x + 1
if __name__ == "__main__":
    for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
        with kind(2) as e:
            for future in [e.submit(f, i) for i in range(3)]:
                print(repr(future.exception()) or future.result())
