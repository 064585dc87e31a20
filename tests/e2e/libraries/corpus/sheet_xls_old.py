# expects artifacts=old.xls
import xlwt
import xlrd
book = xlwt.Workbook()
sheet = book.add_sheet("one")
sheet.write(0, 0, "Größe")
sheet.write(1, 0, 42)
book.save("old.xls")
read = xlrd.open_workbook("old.xls").sheet_by_index(0)
assert read.cell_value(0, 0) == "Größe" and read.cell_value(1, 0) == 42
