from rich.console import Console
from rich.table import Table
table = Table(title="Films")
table.add_column("year")
table.add_column("name")
table.add_row("1977", "[bold]Star Wars[/bold]")
Console(width=60).print(table)
