// Package libraries tests, on real sandboxes, what the data image has: the modules
// that programs import most, and programs of the kind that models write with them.
package libraries

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var (
	shared *product.Product
	update = flag.Bool("update", false, "write the list of modules into docs/libraries.md")
)

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=2", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

// TestCorpus runs each program of corpus/. It has to succeed, with no word on
// stderr. The first line of a program may say what comes back beside text:
//
//	# expects results=MIME,MIME artifacts=PATH,PATH
func TestCorpus(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("corpus/*.py")
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) < 100 {
		t.Fatalf("the corpus has %d programs", len(programs))
	}
	for _, path := range programs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".py"), func(t *testing.T) {
			t.Parallel()
			code, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			results, artifacts := expected(string(code))
			r := shared.Execute(t, execution.Request{Language: "python", Code: string(code), Limits: execution.Limits{TimeoutSeconds: 120.0}})
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Equal(t, "stderr", r.Stderr, "")
			product.Equal(t, "notes", strings.Join(r.Notes, "\n"), "")
			var mimes, paths []string
			for _, x := range r.Results {
				mimes = append(mimes, x.MIME)
			}
			for _, x := range r.Artifacts {
				paths = append(paths, x.Path)
			}
			slices.Sort(paths)
			product.Equal(t, "results", strings.Join(mimes, ","), results)
			product.Equal(t, "artifacts", strings.Join(paths, ","), artifacts)
		})
	}
}

// expected is what a program's first line says of its results and artifacts.
func expected(code string) (results, artifacts string) {
	line, _, _ := strings.Cut(code, "\n")
	words, found := strings.CutPrefix(line, "# expects ")
	if !found {
		return "", ""
	}
	for word := range strings.FieldsSeq(words) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "results":
			results = value
		case "artifacts":
			artifacts = value
		}
	}
	paths := strings.Split(artifacts, ",")
	slices.Sort(paths)
	return results, strings.Join(paths, ",")
}

// look imports each module in an interpreter of its own, as some cannot be
// imported twice, and prints whether that worked and the version.
const look = `
import json, subprocess, sys
CODE = """
import importlib, importlib.metadata as m, sys
name = sys.argv[1]
importlib.import_module(name)
top = name.partition(".")[0]
owners = m.packages_distributions().get(top, [])
print(m.version(owners[0]) if owners else "")
"""
found = {}
for name in json.load(sys.stdin):
    p = subprocess.run([sys.executable, "-W", "ignore", "-c", CODE, name], capture_output=True, text=True)
    found[name] = p.stdout.strip() if p.returncode == 0 else None
    if p.returncode and f"No module named '{name.partition('.')[0]}'" not in p.stderr:
        sys.exit(p.stderr)
print(json.dumps(found))
`

// TestModules compares the list in docs/libraries.md with what the image has. With
// -update it writes the list.
func TestModules(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(content))
	stdin, err := json.Marshal(modules)
	if err != nil {
		t.Fatal(err)
	}
	r := shared.Execute(t, execution.Request{Language: "python", Code: look, Stdin: string(stdin), Limits: execution.Limits{TimeoutSeconds: 300.0}})
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	var found map[string]*string
	if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	table.WriteString("\n| module | version |\n|---|---|\n")
	for _, name := range modules {
		version := "not there"
		if v := found[name]; v != nil {
			version = *v
			if version == "" {
				version = "there"
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, version)
	}
	path := filepath.Join(product.Root(t), "docs", "libraries.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- modules -->\n", "\n<!-- end of modules -->"
	head, rest, hasBegin := strings.Cut(string(doc), begin)
	_, tail, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s does not mark the place of the list", path)
	}
	want := head + begin + table.String() + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(doc) != want {
		t.Errorf("%s lists other modules than the image has: go test ./tests/e2e/libraries -run TestModules -update", path)
	}
}
