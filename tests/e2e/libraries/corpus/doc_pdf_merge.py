# expects artifacts=a.pdf,b.pdf,merged.pdf
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen import canvas
for name in "ab":
    c = canvas.Canvas(f"{name}.pdf")
    c.drawString(100, 700, f"Page {name}")
    c.save()
writer = PdfWriter()
for name in "ab":
    writer.append(f"{name}.pdf")
writer.pages[0].rotate(90)
writer.write("merged.pdf")
assert len(PdfReader("merged.pdf").pages) == 2
