# expects artifacts=ball.gif
import imageio.v3 as iio
import numpy as np
frames = np.zeros((8, 40, 40), dtype=np.uint8)
for i in range(8):
    frames[i, i * 4 : i * 4 + 8, 16:24] = 255
iio.imwrite("ball.gif", frames, duration=100, loop=0)
assert iio.imread("ball.gif").shape[0] == 8
