import io
from PIL import Image
for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
    buffer = io.BytesIO()
    Image.new("RGB", (20, 10), "red").save(buffer, kind)
    assert Image.open(io.BytesIO(buffer.getvalue())).size == (20, 10)
