// Package rich tests, on real sandboxes, what comes back beside text: figures,
// values and files. These are the rows S4 to S7 of docs/results.md.
package rich

import (
	"encoding/base64"
	"fmt"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=4", "PREHEAT_JAVASCRIPT_POOL_SIZE=1", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

// run runs a Python program that must succeed.
func run(t *testing.T, code string) execution.Result {
	t.Helper()
	r := shared.Python(t, code)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	return r
}

func mimes(r execution.Result) string {
	var list []string
	for _, x := range r.Results {
		list = append(list, x.MIME)
	}
	return strings.Join(list, " ")
}

func TestS4Figures(t *testing.T) {
	t.Parallel()
	const plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
	tests := []struct{ name, code, mimes string }{
		{"show", plot + "plt.show()", "image/png"},
		{"two shows", plot + "plt.show()\nplt.plot([2, 1])\nplt.show()", "image/png image/png"},
		{"two figures, one show", plot + "plt.figure()\nplt.show()", "image/png image/png"},
		{"open at the end", plot + "print('end')", "image/png"},
		{"closed", plot + "plt.close()", ""},
		{"saved and closed", plot + "plt.savefig('a.png'); plt.close()", ""},
		{"the last value", "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig", "image/png"},
		{"displayed", plot + "display(plt.gcf())\nNone", "image/png"},
		{"a forked child ends", plot + "import os, sys\nif os.fork() == 0: sys.exit()\nos.wait()\nplt.show()", "image/png"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, tt.code)
			product.Equal(t, "results", mimes(r), tt.mimes)
			for _, x := range r.Results {
				picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(x.Data)))
				if err != nil {
					t.Fatal(err)
				}
				if size := picture.Bounds().Size(); size.X < 300 || size.Y < 200 {
					t.Errorf("the picture is of %v", size)
				}
			}
		})
	}
}

func TestS4FigureOfAProgramThatFails(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nraise SystemExit(3)")
	product.Ended(t, r, execution.StatusFailed, 3, "")
	product.Equal(t, "results", mimes(r), "image/png")
}

// TestS4NoFontCacheAtRunTime: matplotlib says so when it builds its cache.
func TestS4NoFontCacheAtRunTime(t *testing.T) {
	t.Parallel()
	r := run(t, `import glob, logging, os, time
logging.basicConfig(level=logging.INFO)
start = time.time()
import matplotlib.font_manager
print([os.path.getmtime(p) < start for p in glob.glob(os.path.expanduser("~/.cache/matplotlib/fontlist*"))])`)
	product.Wrote(t, r, "[True]\n", "")
}

func TestS5Values(t *testing.T) {
	t.Parallel()
	class := func(method, value string) string {
		return fmt.Sprintf("class C:\n    def %s(self, **_): return %s\n", method, value)
	}
	tests := []struct{ name, code, mime, data string }{
		{"number", "6 * 7", "text/plain", "42"},
		{"string", "x = 'é'\nx", "text/plain", "'é'"},
		{"HTML", class("_repr_html_", "'<b>é</b>'") + "C()", "text/html", "<b>é</b>"},
		{"SVG", class("_repr_svg_", "'<svg/>'") + "C()", "image/svg+xml", "<svg/>"},
		{"PNG", class("_repr_png_", `b"\x89PNG"`) + "C()", "image/png", "iVBORw=="},
		{"JPEG as base64 text", class("_repr_jpeg_", `"/9j/"`) + "C()", "image/jpeg", "/9j/"},
		{"JSON", class("_repr_json_", `{"a": [1, None]}`) + "C()", "application/json", `{"a": [1, null]}`},
		{"Markdown", class("_repr_markdown_", "'*x*'") + "C()", "text/markdown", "*x*"},
		{"LaTeX", class("_repr_latex_", "'$x$'") + "C()", "text/latex", "$x$"},
		{"data with metadata", class("_repr_html_", "('<i>', {})") + "C()", "text/html", "<i>"},
		{"the richest of a bundle", class("_repr_mimebundle_", "{'text/plain': 'p', 'text/html': '<b>'}") + "C()", "text/html", "<b>"},
		{"displayed", "display(1)\nNone", "text/plain", "1"},
		{"shown by another name", "show = display\nshow('x')\nNone", "text/plain", "'x'"},
		{"lone surrogate", class("_repr_html_", `"\udcff"`) + "C()", "text/html", "?"},
		{"a class", "int", "text/plain", "<class 'int'>"},
		{"an object that has every attribute", "class C:\n    def __getattr__(self, n): return lambda **_: n\n    def __repr__(self): return 'r'\nC()", "text/plain", "r"},
		{"a long one is marked", "'x' * 70000", "text/plain", "'" + strings.Repeat("x", 1<<16-1) + "… (4466 more characters)"},
		{"from a thread", "import threading\nt = threading.Thread(target=display, args=(5,)); t.start(); t.join()", "text/plain", "5"},
		{"from a forked child", "import os\nif os.fork() == 0:\n    display(5); os._exit(0)\n_ = os.wait()", "text/plain", "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, tt.code)
			product.Wrote(t, r, "", "")
			if len(r.Results) != 1 {
				t.Fatalf("there are the results %q", mimes(r))
			}
			product.Equal(t, "media type", r.Results[0].MIME, tt.mime)
			product.Equal(t, "data", r.Results[0].Data, tt.data)
		})
	}
}

func TestS5NoValue(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"None": "None", "a call that returns None": "[].append(1)", "print": "print('x')", "assignment": "x = 5",
		"a semicolon after it": "x = [1]\nx.pop();", "a semicolon after it, and a comment": "(1,\n2) ; # not shown",
		"a value that cannot be shown": "class C:\n    def __repr__(self): raise ValueError\nC()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			product.Equal(t, "results", mimes(run(t, code)), "")
		})
	}
}

func TestS5Tables(t *testing.T) {
	t.Parallel()
	const frame = "import pandas as pd\nd = pd.DataFrame({'a': [1, 2], 'b': ['x', '<y>']})\n"
	for name, code := range map[string]string{"last value": frame + "d", "displayed": frame + "display(d)\nd = None"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, code)
			product.Equal(t, "results", mimes(r), "text/html")
			if !strings.Contains(r.Results[0].Data, "<th>a</th>") || !strings.Contains(r.Results[0].Data, "<td>&lt;y&gt;</td>") {
				t.Errorf("the table is %s", r.Results[0].Data)
			}
		})
	}
	t.Run("picture of PIL", func(t *testing.T) {
		t.Parallel()
		product.Equal(t, "results", mimes(run(t, "from PIL import Image\nImage.new('RGB', (2, 2))")), "image/png")
	})
}

const malformed = "a rich result is malformed; those after it are left out"

// record is Python that writes a record to the pipe of results by itself.
func record(head, content string) string {
	return fmt.Sprintf("import os\nhead = b'%s'\nos.write(4, len(head).to_bytes(4, 'big') + head + b'%s')\n", head, content)
}

// TestS5Limits: what exceeds the limits is left out, and a note says so.
func TestS5Limits(t *testing.T) {
	t.Parallel()
	const picture = "class P:\n    def __init__(self, n): self.n = n\n    def _repr_png_(self): return bytes(self.n)\n"
	tests := []struct {
		name, code string
		count      int
		note       string
	}{
		{"number", "for i in range(60): display(i)", 50, "10 rich result(s) are left out: they exceed the limits"},
		{"size of one", picture + "display(P(17 << 20)); display(P(1)); None", 1, "1 rich result(s) are left out: they exceed the limits"},
		{"size of all", picture + "for _ in range(4): display(P(5 << 20))", 3, "1 rich result(s) are left out: they exceed the limits"},
		{"no record", `import os; _ = os.write(4, b"\xff" * 10000)`, 0, malformed},
		{"no JSON", record(`{"parts":`, "") + "_ = 1", 0, malformed},
		{"half a record", record(`{"parts":[{"mime":"image/png","size":9}]}`, "x") + "_ = 1", 0, "a rich result is incomplete and left out"},
		{"a size that is too large", record(`{"parts":[{"mime":"image/png","size":900000000}]}`, "x") + "_ = 1", 0, "1 rich result(s) are left out: they exceed the limits"},
		{"a negative size", record(`{"parts":[{"mime":"image/png","size":-1}]}`, "x") + "_ = 1", 0, malformed},
		{"a type that is none", record(`{"parts":[{"mime":"image\\r\\n/x","size":1}]}`, "x") + "_ = 1", 0, malformed},
		{"no parts", record(`{}`, "") + "_ = 1", 0, malformed},
		{"a note with control characters", record(`{"note":"a\\u001b[31mb"}`, "") + "_ = 1", 0, "a [31mb"},
		{"a long note", record(`{"note":"`+strings.Repeat("n", 600)+`"}`, "") + "_ = 1", 0, strings.Repeat("n", 500) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, tt.code)
			product.Equal(t, "number of results", len(r.Results), tt.count)
			product.Equal(t, "notes", strings.Join(r.Notes, "; "), tt.note)
		})
	}
}

// TestS5FromManyAtOnce: records do not mix on their common pipe.
func TestS5FromManyAtOnce(t *testing.T) {
	t.Parallel()
	r := run(t, `import os, threading
def show():
    for _ in range(5): display("x" * 60000)
for _ in range(3):
    if os.fork() == 0:
        threads = [threading.Thread(target=show) for _ in range(3)]
        for x in threads: x.start()
        for x in threads: x.join()
        os._exit(0)
for _ in range(3): os.wait()`)
	product.Equal(t, "number of results", len(r.Results), 45)
	if slices.ContainsFunc(r.Results, func(x execution.RichResult) bool { return x.Data != "'"+strings.Repeat("x", 60000)+"'" }) {
		t.Error("a result is not as it was sent")
	}
}
