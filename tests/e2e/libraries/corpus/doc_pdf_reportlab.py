# expects artifacts=invoice.pdf
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle
doc = SimpleDocTemplate("invoice.pdf", pagesize=A4)
table = Table([["item", "price"], ["pen", "1.20"], ["book", "14.00"]])
table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)]))
doc.build([Paragraph("Invoice", getSampleStyleSheet()["Title"]), Spacer(1, 12), table])
