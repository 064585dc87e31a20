# expects results=image/svg+xml
import svgwrite
from IPython.display import SVG
drawing = svgwrite.Drawing(size=("100px", "60px"))
drawing.add(drawing.rect((10, 10), (50, 30), fill="teal"))
SVG(drawing.tostring())
