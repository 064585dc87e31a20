# expects artifacts=figure.docx
import io
import matplotlib.pyplot as plt
from docx import Document
from docx.shared import Inches
fig, ax = plt.subplots()
ax.plot([1, 4, 9])
picture = io.BytesIO()
fig.savefig(picture, format="png")
plt.close(fig)
doc = Document()
doc.add_picture(picture, width=Inches(4))
doc.save("figure.docx")
