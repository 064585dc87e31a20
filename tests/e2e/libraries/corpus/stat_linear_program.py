import pulp
problem = pulp.LpProblem("diet", pulp.LpMaximize)
x, y = pulp.LpVariable("x", 0, 4), pulp.LpVariable("y", 0, cat="Integer")
problem += 3 * x + 2 * y
problem += x + y <= 5.5
problem.solve(pulp.COIN_CMD(msg=False))
assert pulp.LpStatus[problem.status] == "Optimal" and y.value() == 2
