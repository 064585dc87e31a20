import json, random
print(json.NAME, random.NAME, json.__file__)
