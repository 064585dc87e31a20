# expects artifacts=simple.pdf
from fpdf import FPDF
pdf = FPDF()
pdf.add_page()
pdf.set_font("Helvetica", size=16)
pdf.cell(0, 10, "Made with fpdf2")
pdf.output("simple.pdf")
