# expects artifacts=report.xlsx
import xlsxwriter
with xlsxwriter.Workbook("report.xlsx") as book:
    sheet = book.add_worksheet("data")
    money = book.add_format({"num_format": "#,##0.00"})
    for i, value in enumerate([1200.5, 99.9, 43210]):
        sheet.write(i, 0, value, money)
    sheet.conditional_format("A1:A3", {"type": "data_bar"})
