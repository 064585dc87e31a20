import xml.etree.ElementTree as ET
import xmltodict
from lxml import etree
text = "<shop><item id='1'>pen</item><item id='2'>ink</item></shop>"
assert [i.text for i in ET.fromstring(text)] == ["pen", "ink"]
assert etree.fromstring(text).xpath("//item[@id='2']/text()") == ["ink"]
assert xmltodict.parse(text)["shop"]["item"][0]["@id"] == "1"
