package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

const documented = "http://127.0.0.1:8080"

// block is a fenced block of a document.
type block struct {
	line     int
	language string
	text     string
}

func blocks(t *testing.T, path string) []block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	open := false
	for i, line := range strings.SplitAfter(string(text), "\n") {
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && !open:
			found = append(found, block{line: i + 1, language: strings.TrimSpace(language)})
			open = true
		case fence:
			open = false
		case open:
			found[len(found)-1].text += line
		}
	}
	return found
}

// Every command of docs/api.md does what the block after it says.
func TestDocumentedCommands(t *testing.T) {
	all := blocks(t, filepath.Join(product.Root(t), "docs", "api.md"))
	commands := 0
	for i, b := range all {
		if b.language != "sh" {
			continue
		}
		commands++
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			script := strings.ReplaceAll(b.text, documented, shared.URL)
			if script == b.text {
				t.Fatal("the command does not talk to the server")
			}
			command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
			command.Stderr = os.Stderr
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if i+1 == len(all) || all[i+1].language == "sh" {
				if len(out) == 0 {
					t.Error("no output")
				}
				return
			}
			switch want := all[i+1]; want.language {
			case "json":
				compareJSON(t, want.text, string(out))
			default:
				if masked(string(out)) != masked(want.text) {
					t.Errorf("got\n%s", out)
				}
			}
		})
	}
	if commands < 10 {
		t.Errorf("%d commands", commands)
	}
}

// masked takes the random part out of sandbox names.
func masked(text string) string {
	return regexp.MustCompile(`(python|javascript)-[a-z0-9]{8}`).ReplaceAllString(text, "$1-*")
}

// compareJSON checks that got has the members of want, and the same values
// where they do not depend on the run.
func compareJSON(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	compare(t, "", w, g)
}

func compare(t *testing.T, at string, want, got any) {
	t.Helper()
	varies := []string{"sandbox_name", "request_id", "cpu_ms", "wall_ms", "max_rss_bytes", "queue", "claim", "start", "run", "total"}
	w, isObject := want.(map[string]any)
	g, ok := got.(map[string]any)
	switch {
	case isObject && ok:
		for name := range g {
			if _, there := w[name]; !there {
				t.Errorf("%s.%s is not in the document", at, name)
			}
		}
		for name, value := range w {
			compare(t, at+"."+name, value, g[name])
		}
	case slices.Contains(varies, at[strings.LastIndex(at, ".")+1:]):
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			t.Errorf("%s is %v", at, got)
		}
	case fmt.Sprint(want) != fmt.Sprint(got):
		t.Errorf("%s is %v instead of %v", at, got, want)
	}
}

// The tables of docs/api.md have the server's own limits and statuses.
func TestDocumentedTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(product.Root(t), "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	l := execution.DefaultLimits()
	size := func(n int64) string {
		if n>>30 > 0 {
			return fmt.Sprintf("%d GiB", n>>30)
		}
		return fmt.Sprintf("%d MiB", n>>20)
	}
	for _, row := range []string{
		fmt.Sprintf("| `timeout_seconds` | %g | %g |", l.Default.TimeoutSeconds, l.Maximum.TimeoutSeconds),
		fmt.Sprintf("| `output_bytes` | %s per stream | %s |", size(l.Default.OutputBytes), size(l.Maximum.OutputBytes)),
		fmt.Sprintf("| `total_output_bytes` | %s per stream | %s |", size(l.Default.TotalOutputBytes), size(l.Maximum.TotalOutputBytes)),
		fmt.Sprintf("| `memory_bytes` | %s | %s |", size(l.Default.MemoryBytes), size(l.Maximum.MemoryBytes)),
	} {
		if !strings.Contains(string(text), row) {
			t.Errorf("the row %s… is missing", row)
		}
	}
	types, _ := document.At("/components/schemas/Problem/properties/type/enum").([]any)
	for _, urn := range types {
		kind, ok := strings.CutPrefix(fmt.Sprint(urn), "urn:preheat:problem:")
		status := execution.NewProblem(execution.ProblemType(kind), "").Status
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\|[^|]*`%s`", status, kind))
		if ok && !row.Match(text) {
			t.Errorf("%s (%d) is not in the table of errors", kind, status)
		}
	}
	statuses, _ := document.At("/components/schemas/Result/properties/status/enum").([]any)
	for _, s := range statuses {
		if !strings.Contains(string(text), fmt.Sprintf("\n| `%v` |", s)) {
			t.Errorf("the status %v is not in the table", s)
		}
	}
}
