from prettytable import PrettyTable
table = PrettyTable(["city", "people"])
table.add_rows([["Paris", 2102650], ["Rome", 2755309]])
table.sortby = "people"
print(table)
