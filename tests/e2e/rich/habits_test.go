package rich

import (
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// TestS4AnyBackend: an open or shown figure is a result however its backend was
// chosen, and wherever it was drawn.
func TestS4AnyBackend(t *testing.T) {
	t.Parallel()
	const plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
	script := func(code string) string {
		return "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''" + code + "'''], check=True)\nNone"
	}
	for _, tt := range []struct {
		name string
		r    execution.Request
		want int
	}{
		{"Agg in code, shown", execution.Request{Code: "import matplotlib\nmatplotlib.use('Agg')\n" + plot + "plt.show()"}, 1},
		{"Agg in code, left open", execution.Request{Code: "import matplotlib\nmatplotlib.use('agg')\n" + plot + "None"}, 1},
		{"Agg in code, shown twice with a change between", execution.Request{Code: "import matplotlib\nmatplotlib.use('Agg')\n" + plot + "plt.show()\nplt.plot([3, 4])\nplt.show()"}, 2},
		{"Agg in code, saved and closed", execution.Request{Code: "import matplotlib\nmatplotlib.use('Agg')\n" + plot + "plt.savefig('/tmp/tmpabcdefgh.png'); plt.close()"}, 0},
		{"SVG in code", execution.Request{Code: "import matplotlib\nmatplotlib.use('svg')\n" + plot + "plt.show()"}, 1},
		{"by the environment", execution.Request{Code: plot + "plt.show()", Env: map[string]string{"MPLBACKEND": "Agg"}}, 1},
		{"switched", execution.Request{Code: plot + "plt.switch_backend('agg')\nplt.plot([1])\nplt.show()"}, 1},
		{"in a Python that it starts", execution.Request{Code: script(plot + "plt.show()")}, 1},
		{"in a Python that it starts, with Agg", execution.Request{Code: script("import matplotlib; matplotlib.use(\"Agg\")\n" + plot)}, 1},
		{"in a Python that a shell starts", execution.Request{Language: "bash", Code: "python3 - <<'END'\n" + plot + "plt.show()\nEND"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.r.Language == "" {
				tt.r.Language = "python"
			}
			r := shared.Execute(t, tt.r)
			product.Wrote(t, r, "", "")
			product.Equal(t, "results", mimes(r), strings.TrimSpace(strings.Repeat("image/png ", tt.want)))
		})
	}
}

// TestS4FigureThatCannotBeDrawn is one traceback of the program and matplotlib, or a
// note where the program has ended well.
func TestS4FigureThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	const bad = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title(r'$\\nonsense{$')\n"
	r := shared.Python(t, bad+"plt.show()")
	product.Ended(t, r, execution.StatusFailed, 1, "")
	if strings.Count(r.Stderr, "Traceback") != 1 || strings.Contains(r.Stderr, "_preheat") || !strings.Contains(r.Stderr, "main.py") {
		t.Errorf("stderr is %q", r.Stderr)
	}
	product.Equal(t, "notes", len(r.Notes), 0)
	r = shared.Python(t, bad+"print('fine')")
	product.Wrote(t, r, "fine\n", "")
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "figure 1 could not be drawn: ValueError: ") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestS5Alternatives: one value comes in all its media types, the richest first.
func TestS5Alternatives(t *testing.T) {
	t.Parallel()
	r := run(t, `class C:
    def _repr_html_(self): return "<b>"
    def _repr_mimebundle_(self): return {"application/vnd.x+json": {"a": 1}, "text/plain": "plain"}
display(C())
import pandas
display(pandas.DataFrame({"a": [1]}))
None`)
	product.Equal(t, "results", mimes(r), "text/html text/html")
	for i, want := range []string{`application/vnd.x+json {"a": 1};text/plain plain;`, "text/plain    a\n0  1;"} {
		got := ""
		for _, a := range r.Results[i].Alternatives {
			got += a.MIME + " " + a.Data + ";"
		}
		product.Equal(t, "alternatives", got, want)
	}
}

// TestS5ValuesThatFail: what raises is said, and the other forms survive.
func TestS5ValuesThatFail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, code, mimes, data, note string }{
		{"repr", "class A:\n    def __repr__(self): raise ValueError('no')\nA()", "", "", "a value of type A could not be shown by __repr__: ValueError: no"},
		{"repr, with HTML", "class A:\n    def __repr__(self): raise ValueError\n    def _repr_html_(self): return '<b>'\nA()", "text/html", "<b>", "a value of type A could not be shown by __repr__: ValueError"},
		{"HTML", "class A:\n    def __repr__(self): return 'a'\n    def _repr_html_(self): 1/0\nA()", "text/plain", "a", "a value of type A could not be shown by _repr_html_: ZeroDivisionError: division by zero"},
		{"JSON that has no numbers", "class A:\n    def __repr__(self): return 'a'\n    def _repr_json_(self): return {'x': [float('nan'), float('inf'), 1.5]}\nA()", "application/json", `{"x": [null, null, 1.5]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, tt.code)
			product.Wrote(t, r, "", "")
			product.Equal(t, "results", mimes(r), tt.mimes)
			if tt.data != "" && len(r.Results) > 0 {
				product.Equal(t, "data", r.Results[0].Data, tt.data)
			}
			product.Equal(t, "notes", strings.Join(r.Notes, "; "), tt.note)
		})
	}
}

// TestS6OwnFilesFirst: caches do not push out what a program was written for, and
// what is not returned is named.
func TestS6OwnFilesFirst(t *testing.T) {
	t.Parallel()
	r := run(t, `import os
os.mkdir(".cache")
for i in range(25): open(f".cache/{i:02}", "w").close()
open("/mnt/data/report.csv", "w").close()
open("/tmp/other.xlsx", "w").close()
open(os.path.expanduser("~/home.txt"), "w").close()
None`)
	if list := listed(r); !strings.Contains(list, "report.csv 0 text/csv") {
		t.Errorf("the artifacts are %s", list)
	}
	notes := strings.Join(r.Notes, "; ")
	for _, want := range []string{"6 more file(s) were written than the 20 that are returned: .cache/", "files outside of the working directory are not returned: ", "/tmp/other.xlsx (0 bytes)", "/home/sandbox/home.txt (0 bytes)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in the notes %q", want, notes)
		}
	}
}

// TestS15NotebookHabits: what only notebooks understand is said in a note, and the
// program is run as it is.
func TestS15NotebookHabits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, language, code, note string }{
		{"shell command", "python", "import os\n!pip install seaborn\nprint(1)", "line 2, '!pip install seaborn', is a shell command of notebooks; programs run as plain Python, and nothing can be installed"},
		{"magic", "python", "%matplotlib inline\nprint(1)", "line 1, '%matplotlib inline', is a command of notebooks; programs run as plain Python, where figures come back without it"},
		{"await", "python", "import asyncio\nawait asyncio.sleep(0)", "line 2, 'await asyncio.sleep(0)', awaits outside of a function, as only notebooks can; asyncio.run(main()) does it in a program"},
		{"fence", "python", "```python\nprint(1)\n```", "the program begins with ```, as a code block in Markdown does: that is no part of it"},
		{"CR LF in bash", "bash", "if true; then\r\n  echo yes\r\nfi\r\n", "the program's lines end in CR LF, as on Windows: bash takes each CR as part of its line; with LF alone it runs as it was meant"},
		{"fence around JavaScript", "javascript", "```js\nlet x = (;\n```", "the program begins with ```, as a code block in Markdown does: that is no part of it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: tt.language, Code: tt.code})
			product.Equal(t, "status", r.Status, execution.StatusFailed)
			product.Equal(t, "notes", strings.Join(r.Notes, "; "), tt.note)
		})
	}
}

// TestFilesOfTheProgramAreLeftAlone: a Python that a program starts looks for the
// pipe of results at descriptor 4 of that program, where it may have its own file.
func TestFilesOfTheProgramAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{Language: "javascript", Code: `const fs = require('fs'), cp = require('child_process');
let fd;
do { fd = fs.openSync('mine', 'w'); } while (fd < 4);
cp.execFileSync('python3', ['-c', 'import matplotlib.pyplot as plt; plt.plot([1]); plt.show()'], {stdio: 'inherit'});
console.log(fs.statSync('mine').size);`})
	product.Wrote(t, r, "0\n", "")
}
