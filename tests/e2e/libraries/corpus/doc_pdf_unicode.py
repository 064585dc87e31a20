# expects artifacts=unicode.pdf
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
pdfmetrics.registerFont(TTFont("DejaVu", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"))
c = canvas.Canvas("unicode.pdf")
c.setFont("DejaVu", 14)
c.drawString(72, 700, "Žluťoučký kůň, Ελληνικά, Привет")
c.save()
