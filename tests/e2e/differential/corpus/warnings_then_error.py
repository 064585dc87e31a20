x = "\d"
return x
