import ast, marshal_helper, typing
print(ast.__file__.startswith("/usr/lib"), marshal_helper.X, typing.__file__.startswith("/usr/lib"))
