from tabulate import tabulate
rows = [["Sun", 696000, 1.989e30], ["Earth", 6371, 5.97e24]]
for style in ("plain", "github", "grid", "html", "latex"):
    print(tabulate(rows, headers=["body", "radius", "mass"], tablefmt=style))
