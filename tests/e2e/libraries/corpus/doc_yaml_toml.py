import tomllib
import toml
import yaml
settings = {"server": {"port": 8080, "hosts": ["a", "b"]}}
assert yaml.safe_load(yaml.safe_dump(settings)) == settings == tomllib.loads(toml.dumps(settings))
