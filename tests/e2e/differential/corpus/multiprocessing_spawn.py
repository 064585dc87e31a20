import multiprocessing as mp
print("at import", __name__)
def square(x): return (x * x, __name__)
if __name__ == "__main__":
    mp.set_start_method("spawn")
    with mp.Pool(1) as p:
        print(p.map(square, range(3)))
    mp.active_children()
