// Package differential runs a corpus of programs twice in the same sandbox
// image, under Preheat and as a plain process, and compares what they leave.
//
// The plain run is a bash program that puts the corpus program in its place
// and becomes its interpreter, as a person would start it: same namespaces,
// limits, user and environment, no harness.
package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=4", "PREHEAT_JAVASCRIPT_POOL_SIZE=3", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

// interpreter is how the plain run of a language begins.
type interpreter struct{ language, script, command string }

func interpreterOf(t *testing.T, name string) interpreter {
	t.Helper()
	switch filepath.Ext(name) {
	case ".py":
		// Under Preheat lines are written at once, so that they come before what
		// children write.
		return interpreter{"python", "main.py", "PYTHONUNBUFFERED=1 python3"}
	case ".js":
		return interpreter{"javascript", "main.js", "node"}
	case ".sh":
		return interpreter{"bash", "main.sh", "bash"}
	}
	t.Fatalf("%s: no interpreter for this extension", name)
	return interpreter{}
}

// plain is the bash program of the plain run. The variables that a shell sets
// for itself are taken away again.
func plain(in interpreter) string {
	return fmt.Sprintf(`rm main.sh
mv program %[1]s
exec env -u _ -u SHLVL -u PWD -u OLDPWD %[2]s %[1]s "$@"
`, in.script, in.command)
}

// load reads a corpus program and what stands beside it: name.stdin, name.args
// and name.env (an entry on each line), and the folder name.files.
func load(t *testing.T, path string) execution.Request {
	t.Helper()
	base := strings.TrimSuffix(path, filepath.Ext(path))
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := execution.Request{
		Language: interpreterOf(t, path).language, Code: string(code),
		Stdin: optional(t, base+".stdin"), Args: lines(optional(t, base+".args")), Env: map[string]string{},
	}
	for _, entry := range lines(optional(t, base+".env")) {
		name, value, _ := strings.Cut(entry, "=")
		r.Env[name] = value
	}
	files, err := filepath.Glob(filepath.Join(base+".files", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		r.Files = append(r.Files, execution.File{Path: filepath.Base(f), Content: optional(t, f)})
	}
	return r
}

func optional(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// outcome is what is compared.
type outcome struct {
	stdout, stderr, signal string
	status                 execution.Status
	exitCode               int
	files                  []string
}

// volatile are the parts of an output that differ between any two runs.
var volatile = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b0x[0-9a-f]{6,16}\b`), "0xADDRESS"},
	// It is in the environment of the plain run only.
	{regexp.MustCompile(`(?m)^PYTHONUNBUFFERED = 1\n`), ""},
	// Node.js's process id in warnings, and the thread's in its messages.
	{regexp.MustCompile(`\(node:\d+\)`), "(node:PID)"},
	// The process id that bash tells for a job.
	{regexp.MustCompile(`(main\.sh: line \d+:) +\d+ `), "$1 PID "},
}

func normal(s string) string {
	for _, v := range volatile {
		s = v.pattern.ReplaceAllString(s, v.instead)
	}
	return s
}

func run(t *testing.T, r execution.Request, script string) outcome {
	t.Helper()
	result := shared.Execute(t, r)
	o := outcome{
		stdout: normal(result.Stdout), stderr: normal(result.Stderr),
		status: result.Status, exitCode: result.ExitCode,
	}
	if result.Signal != nil {
		o.signal = *result.Signal
	}
	for _, a := range result.Artifacts {
		if a.Path != script { // the plain run has put it there
			o.files = append(o.files, fmt.Sprintf("%s (%d bytes, %s): %s", a.Path, a.Size, a.Omitted, a.Content))
		}
	}
	return o
}

func TestI6I7SameAsPlain(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("corpus/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !slices.Contains([]string{".py", ".js", ".sh"}, filepath.Ext(path)) {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			in := interpreterOf(t, path)
			request := load(t, path)
			bare := request
			bare.Language, bare.Code = "bash", plain(in)
			bare.Files = append(slices.Clone(request.Files), execution.File{Path: "program", Content: request.Code})
			got, want := run(t, request, in.script), run(t, bare, in.script)
			compare(t, "stdout", got.stdout, want.stdout)
			compare(t, "stderr", got.stderr, want.stderr)
			compare(t, "status", got.status, want.status)
			compare(t, "exit code", got.exitCode, want.exitCode)
			compare(t, "signal", got.signal, want.signal)
			compare(t, "files", strings.Join(got.files, "\n"), strings.Join(want.files, "\n"))
		})
	}
}

func compare[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s differs\nunder Preheat:\n%v\nplain:\n%v", what, got, want)
	}
}

// TestCorpus keeps the corpus as broad as it is meant to be.
func TestCorpus(t *testing.T) {
	for pattern, least := range map[string]int{"corpus/*.py": 40, "corpus/*.js": 12, "corpus/*.sh": 6} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) < least {
			t.Errorf("%d programs match %s; there should be %d", len(paths), pattern, least)
		}
	}
}
