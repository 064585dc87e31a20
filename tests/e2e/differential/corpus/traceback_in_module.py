import helper
helper.explode(7)
