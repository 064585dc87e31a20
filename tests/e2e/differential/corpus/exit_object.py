import sys
sys.exit({"k": 1})
