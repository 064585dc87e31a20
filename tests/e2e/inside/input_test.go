package inside

import (
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

func TestS8InputFiles(t *testing.T) {
	t.Parallel()
	request := python("import os\nfor d, _, n in sorted(os.walk('.')): print(d, sorted(n))\nprint(open('a/b/c.bin', 'rb').read(), open('é x').read(), open('empty').read())")
	request.Files = []execution.File{
		{Path: "a/b/c.bin", Content: "/wA=", Encoding: "base64"}, {Path: "é x", Content: "ü\n"}, {Path: "empty", Content: ""},
		{Path: "a/d", Content: "x"}, {Path: "...", Content: ""}, {Path: ".hidden", Content: ""},
	}
	r := shared.Execute(t, request)
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, ". ['...', '.hidden', 'empty', 'main.py', 'é x']\n./a ['d']\n./a/b ['c.bin']\nb'\\xff\\x00' ü\n \n", "")
}

// TestS8PathsThatAreRefused tries one of the paths that execution.TestValidateFiles
// lists.
func TestS8PathsThatAreRefused(t *testing.T) {
	t.Parallel()
	request := python("print(1)")
	request.Files = []execution.File{{Path: "good", Content: "x"}, {Path: "a/../../x", Content: "x"}}
	product.Equal(t, "field", shared.Problem(t, 422, request).Field, "files[1].path")
}

// TestS8NothingOutside: whatever the runner was made to write is in the work
// folder.
func TestS8NothingOutside(t *testing.T) {
	t.Parallel()
	request := execution.Request{Language: "bash", Code: "find / -type f -user sandbox -not -path '/proc/*' -not -path '/sys/*' 2>/dev/null | grep -v ^/home/sandbox/.cache/ | sort"}
	request.Files = []execution.File{{Path: "d/x", Content: "x"}}
	product.Equal(t, "stdout", shared.Execute(t, request).Stdout, "/work/d/x\n/work/main.sh\n")
}

func TestS8FileThatShadowsAModule(t *testing.T) {
	t.Parallel()
	request := python("import json\nprint(json.__file__, json.NAME)")
	request.Files = []execution.File{{Path: "json.py", Content: "NAME = 'mine'"}}
	r := shared.Execute(t, request)
	product.Wrote(t, r, "/work/json.py mine\n", "")
}

func TestS9Source(t *testing.T) {
	t.Parallel()
	large := "x = '" + strings.Repeat("é", 500_000) + "'\nprint(len(x))"
	succeed(t, []program{
		{"BOM", python("\ufeffprint('ok')"), "ok\n"},
		{"CRLF", python("x = '''a\r\nb'''\r\nprint(repr(x))\r\nif x:\r\n    print(len(x))\r\n"), "'a\\nb'\n3\n"},
		{"coding line", python("# -*- coding: latin-1 -*-\nprint(ascii('é'))"), "'\\xc3\\xa9'\n"},
		{"1 MB", python(large), "500000\n"},
		{"no newline at the end", python("if 1:\n    print(1)"), "1\n"},
		{"only a comment", python("# nothing"), ""},
		{"form feed and tabs", python("\x0cif 1:\n\tprint(1)"), "1\n"},
		{"surrogate pair in JSON", python("print('\U0001F600')"), "\U0001F600\n"},
		{"bash with NUL in stdin", execution.Request{Language: "bash", Code: "tr -d x | od -An -c", Stdin: "a\x00xb"}, "   a  \\0   b\n"},
		{"deeply nested", python("print(" + strings.Repeat("(", 150) + "1" + strings.Repeat(")", 150) + ")"), "1\n"},
		{"a long sum", python("print(" + strings.Repeat("1+", 900) + "1)"), "901\n"},
	})
}

func TestS9SourceThatCannotRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, code, stderr string }{
		{"NUL", "print(1)\x00\n", "SyntaxError: source code cannot contain null bytes\n"},
		{"unknown coding", "# coding: klingon\nprint(1)", "SyntaxError: encoding problem: klingon\n"},
		{"too deep", "print(" + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + ")", "SyntaxError: too many nested parentheses\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Python(t, tt.code)
			product.Ended(t, r, execution.StatusFailed, 1, "")
			if !strings.HasSuffix(r.Stderr, tt.stderr) || strings.Contains(r.Stderr, "preheat") {
				t.Errorf("stderr is %.500s", r.Stderr)
			}
		})
	}
}

// TestS9LoneSurrogate: JSON can write what is no text; no program gets it.
func TestS9LoneSurrogate(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"language":"python","code":"print('\ud800')"}`, "{\"language\":\"python\",\"code\":\"print('\xff')\"}"} {
		problem := shared.Problem(t, 400, body)
		if !problem.IsKind(execution.ProblemMalformed) {
			t.Errorf("the problem is %+v", problem)
		}
	}
}

func TestS10Environment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "x'; import os #", "B": "", "PATH": "/x", "C": "é\n\"$(id)`", "D": "a=b", "é": "ü", "_": "u"}
	const want = "x'; import os #||/x|é\n\"$(id)`|a=b|ü|u"
	for language, code := range map[string]string{
		"python":     "import os\nprint('|'.join(os.environ[n] for n in 'A B PATH C D é _'.split()), end='')",
		"javascript": "process.stdout.write('A B PATH C D é _'.split(' ').map((n) => process.env[n]).join('|'))",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: language, Code: code, Env: env})
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, want, "")
		})
	}
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, execution.Request{Language: "bash", Code: `printf '%s|' "$A" "$B" "$PATH" "$C" "$D"`, Env: env})
		product.Wrote(t, r, "x'; import os #||/x|é\n\"$(id)`|a=b|", "")
	})
}

// TestS10NamesThatInterpretersObey: they do what they do to an interpreter
// that is started with them, and to nothing else.
func TestS10NamesThatInterpretersObey(t *testing.T) {
	t.Parallel()
	file := []execution.File{{Path: "lib/helper.py", Content: "X = 5"}, {Path: "rc", Content: "echo from rc"}}
	for _, tt := range []struct {
		name, language, code string
		env                  map[string]string
		stdout, stderr       string
	}{
		{"PYTHONPATH", "python", "import helper; print(helper.X)", map[string]string{"PYTHONPATH": "/work/lib"}, "5\n", ""},
		{"PYTHONOPTIMIZE", "python", "assert False; print(__debug__)", map[string]string{"PYTHONOPTIMIZE": "1"}, "False\n", ""},
		{"PYTHONHASHSEED", "python", "print(hash('x'))", map[string]string{"PYTHONHASHSEED": "1"}, "9058415254629903952\n", ""},
		{"PYTHONSTARTUP", "python", "print(1)", map[string]string{"PYTHONSTARTUP": "/work/rc"}, "1\n", ""},
		{"TZ", "python", "import time; print(time.tzname[0])", map[string]string{"TZ": "Asia/Tokyo"}, "JST\n", ""},
		{"LC_ALL", "python", "import locale; print(locale.setlocale(locale.LC_ALL, ''))", map[string]string{"LC_ALL": "C"}, "C\n", ""},
		{"HOME", "python", "import os; print(os.path.expanduser('~'))", map[string]string{"HOME": "/tmp"}, "/tmp\n", ""},
		{"LD_PRELOAD", "python", "print(1)", map[string]string{"LD_PRELOAD": "y"}, "1\n",
			"ERROR: ld.so: object 'y' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.\n"},
		{"NODE_OPTIONS", "javascript", "console.log(process.execArgv, process.env.NODE_OPTIONS, new Error().stack.split('\\n').length)", map[string]string{"NODE_OPTIONS": "--stack-trace-limit=1"}, "[] --stack-trace-limit=1 2\n", ""},
		{"TZ for node", "javascript", "console.log(new Date(0).getHours())", map[string]string{"TZ": "Asia/Tokyo"}, "9\n", ""},
		{"BASH_ENV", "bash", "echo main", map[string]string{"BASH_ENV": "rc"}, "from rc\nmain\n", ""},
		{"IFS", "bash", `x="a:b"; printf '[%s]' $x`, map[string]string{"IFS": ":"}, "[a:b]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: tt.language, Code: tt.code, Env: tt.env, Files: file})
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, tt.stdout, tt.stderr)
		})
	}
}

// TestS10NamesThatAreRefused tries one of the names that
// execution.TestValidateEnvAndArgs lists.
func TestS10NamesThatAreRefused(t *testing.T) {
	t.Parallel()
	request := python("print(1)")
	request.Env = map[string]string{"PREHEAT_RUNNER_TOKEN": "x"}
	product.Equal(t, "field", shared.Problem(t, 422, request).Field, "env.PREHEAT_RUNNER_TOKEN")
}
