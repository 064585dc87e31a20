import random, uuid, secrets
random.seed(1); print(random.random())
print(len(uuid.uuid4().hex), len(secrets.token_hex()))
