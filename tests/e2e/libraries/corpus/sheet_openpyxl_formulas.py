# expects artifacts=budget.xlsx
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Font, PatternFill
wb = Workbook()
ws = wb.active
ws.append(["item", "cost"])
for row in [("rent", 900), ("food", 350), ("travel", 120)]:
    ws.append(row)
ws["A5"], ws["B5"] = "total", "=SUM(B2:B4)"
for cell in ws[1]:
    cell.font = Font(bold=True)
    cell.fill = PatternFill("solid", start_color="DDEEFF")
wb.save("budget.xlsx")
assert load_workbook("budget.xlsx").active["B5"].value == "=SUM(B2:B4)"
