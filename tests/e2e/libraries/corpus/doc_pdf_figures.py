# expects artifacts=plots.pdf
import matplotlib.pyplot as plt
from matplotlib.backends.backend_pdf import PdfPages
with PdfPages("plots.pdf") as pdf:
    for power in (1, 2, 3):
        fig, ax = plt.subplots()
        ax.plot([x**power for x in range(10)])
        pdf.savefig(fig)
        plt.close(fig)
