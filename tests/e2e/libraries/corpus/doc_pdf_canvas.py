# expects artifacts=hello.pdf
from reportlab.pdfgen import canvas
page = canvas.Canvas("hello.pdf")
page.setFont("Helvetica-Bold", 24)
page.drawString(72, 720, "Hello, PDF")
page.circle(300, 400, 80, fill=1)
page.save()
from pypdf import PdfReader
assert "Hello, PDF" in PdfReader("hello.pdf").pages[0].extract_text()
