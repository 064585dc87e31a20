# expects artifacts=letter.docx
from docx import Document
from docx.shared import Pt
doc = Document()
doc.add_heading("Quarterly report", level=1)
paragraph = doc.add_paragraph("Revenue grew by ")
paragraph.add_run("12 %").bold = True
table = doc.add_table(rows=1, cols=2)
table.rows[0].cells[0].text, table.rows[0].cells[1].text = "month", "value"
doc.styles["Normal"].font.size = Pt(11)
doc.save("letter.docx")
assert Document("letter.docx").paragraphs[1].text == "Revenue grew by 12 %"
