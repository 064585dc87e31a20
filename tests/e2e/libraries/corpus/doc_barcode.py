# expects artifacts=ean.svg results=text/plain
import barcode
barcode.get("ean13", "123456789012").save("ean")
