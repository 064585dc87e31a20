NAME = "my random"
