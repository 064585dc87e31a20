NAME = "my json"
