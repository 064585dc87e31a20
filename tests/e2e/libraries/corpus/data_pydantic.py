from pydantic import BaseModel, Field, ValidationError
class User(BaseModel):
    name: str
    age: int = Field(ge=0)
assert User.model_validate_json('{"name": "Ann", "age": "3"}').age == 3
try:
    User(name="Bob", age=-1)
except ValidationError as e:
    assert e.error_count() == 1
