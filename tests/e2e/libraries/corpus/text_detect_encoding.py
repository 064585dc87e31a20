import chardet
import charset_normalizer
data = "Příliš žluťoučký kůň úpěl ďábelské ódy, a to celou noc až do rána".encode("utf-8")
assert chardet.detect(data)["encoding"] == "utf-8"
assert charset_normalizer.from_bytes(data).best().encoding == "utf_8"
