import multiprocessing as mp
def child(q): q.put(__name__)
if __name__ == "__main__":
    ctx = mp.get_context("forkserver")
    q = ctx.Queue()
    p = ctx.Process(target=child, args=(q,)); p.start()
    print(q.get(timeout=20)); p.join(); print(p.exitcode)
