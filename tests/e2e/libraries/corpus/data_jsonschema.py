import jsonschema
schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
jsonschema.validate({"id": 1}, schema)
assert not jsonschema.Draft202012Validator(schema).is_valid({"id": "x"})
