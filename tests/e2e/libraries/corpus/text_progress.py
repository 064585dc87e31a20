import io
from tqdm import tqdm
from tqdm.auto import trange
out = io.StringIO()
assert sum(tqdm(range(100), file=out)) == 4950 and "100%" in out.getvalue()
for _ in trange(3, file=out):
    pass
