# expects artifacts=small.jpg results=image/png
import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
ImageOps.grayscale(noise.filter(ImageFilter.GaussianBlur(2))).resize((32, 32)).save("small.jpg", quality=80)
ImageEnhance.Contrast(noise).enhance(1.5)
