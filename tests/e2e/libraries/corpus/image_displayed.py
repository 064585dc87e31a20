# expects results=image/jpeg artifacts=photo.jpg
from IPython.display import Image, display
from PIL import Image as Picture
Picture.new("RGB", (40, 30), "green").save("photo.jpg")
display(Image("photo.jpg"))
