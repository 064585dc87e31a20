# expects artifacts=chart.xlsx
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
wb = Workbook()
ws = wb.active
for row in [["quarter", "revenue"], ["Q1", 10], ["Q2", 14], ["Q3", 9], ["Q4", 20]]:
    ws.append(row)
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=1, max_row=5), titles_from_data=True)
chart.set_categories(Reference(ws, min_col=1, min_row=2, max_row=5))
ws.add_chart(chart, "D2")
wb.save("chart.xlsx")
