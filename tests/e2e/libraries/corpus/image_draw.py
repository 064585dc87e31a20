# expects artifacts=card.png
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (300, 120), "white")
draw = ImageDraw.Draw(image)
draw.rounded_rectangle((10, 10, 290, 110), 15, outline="navy", width=3)
draw.text((30, 40), "Hello", fill="black", font=ImageFont.truetype("arial.ttf", 32))
image.save("card.png")
