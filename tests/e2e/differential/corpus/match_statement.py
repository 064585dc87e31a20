match {"a": 1}:
    case {"a": int(x)} if x > 0:
        print(x)
type X[T] = list[T]
def f[T](x: T) -> T: return x
print(X, f(1), f"{'nested' + f'{1+1}'}")
