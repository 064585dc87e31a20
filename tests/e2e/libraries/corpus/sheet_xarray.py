import numpy as np
import xarray as xr
data = xr.DataArray(np.arange(12).reshape(3, 4), dims=("time", "city"), coords={"city": list("abcd")})
assert data.sel(city="c").sum().item() == 2 + 6 + 10
print(data.mean("time"))
