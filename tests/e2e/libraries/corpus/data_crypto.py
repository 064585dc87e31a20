import bcrypt
import jwt
from cryptography.fernet import Fernet
key = Fernet.generate_key()
assert Fernet(key).decrypt(Fernet(key).encrypt(b"secret")) == b"secret"
assert bcrypt.checkpw(b"pw", bcrypt.hashpw(b"pw", bcrypt.gensalt(4)))
token = jwt.encode({"sub": "ann"}, "k" * 32, algorithm="HS256")
assert jwt.decode(token, "k" * 32, algorithms=["HS256"])["sub"] == "ann"
