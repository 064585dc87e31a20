import io
from pdfminer.high_level import extract_text
from reportlab.pdfgen import canvas
buffer = io.BytesIO()
c = canvas.Canvas(buffer)
c.drawString(100, 700, "Find me")
c.save()
buffer.seek(0)
assert "Find me" in extract_text(buffer)
