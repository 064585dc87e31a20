# expects artifacts=code.png
import qrcode
qrcode.make("https://example.com").save("code.png")
