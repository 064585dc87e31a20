// Command report prints what the attacks have found as a table: it reads the
// output of `go test -json`, where each attack says as attributes what it tried
// and what happened. It fails if one did not hold, or did not say.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

func main() {
	t, err := read(os.Stdin)
	if err == nil {
		err = t.write(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// attack is one test, and a row unless it has subtests.
type attack struct {
	name, result string
	attributes   map[string]string
	output       []string
	parent       bool
}

// table has the attacks in the order in which they began.
type table struct {
	attacks []*attack
	// output is what no test wrote: a build that failed, a server's log.
	output []string
	// failed says that the tests as a whole did.
	failed bool
}

// event is what `go test -json` writes.
type event struct{ Action, Test, Key, Value, Output string }

func read(r io.Reader) (*table, error) {
	var t table
	byName := map[string]*attack{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the output of go test -json: %w in %q", err, lines.Text())
		}
		if e.Test == "" {
			t.output = append(t.output, e.Output)
			t.failed = t.failed || e.Action == "fail" || e.Action == "build-fail"
			continue
		}
		a := byName[e.Test]
		if a == nil {
			a = &attack{name: e.Test, attributes: map[string]string{}}
			byName[e.Test], t.attacks = a, append(t.attacks, a)
			if i := strings.LastIndex(e.Test, "/"); i >= 0 && byName[e.Test[:i]] != nil {
				byName[e.Test[:i]].parent = true
			}
		}
		switch e.Action {
		case "attr":
			a.attributes[e.Key] = e.Value
		case "output":
			a.output = append(a.output, e.Output)
		case "pass", "fail", "skip":
			a.result = e.Action
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the output of go test -json: %w", err)
	}
	return &t, nil
}

// write writes the rows, then all that was said of those that did not hold.
func (t *table) write(w io.Writer) error {
	rows, held := 0, 0
	var wrong []*attack
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ATTACK\tTRIED\tHAPPENED\tHELD")
	for _, a := range t.attacks {
		tried, happened := a.attributes["tried"], a.attributes["happened"]
		ok := a.result == "pass" && (a.parent || happened != "")
		if !ok {
			wrong = append(wrong, a)
		}
		if a.parent {
			continue
		}
		rows++
		answer := "NO"
		if ok {
			held++
			answer = "yes"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", a.name, short(tried, 70), short(happened, 50), answer)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, a := range wrong {
		fmt.Fprintf(w, "\n%s: result %q, attributes %v\n%s", a.name, a.result, a.attributes, strings.Join(a.output, ""))
	}
	if t.failed || rows == 0 {
		fmt.Fprintf(w, "\n%s", strings.Join(t.output, ""))
	}
	fmt.Fprintf(w, "\n%d attacks, %d held\n", rows, held)
	if t.failed || rows == 0 || len(wrong) > 0 {
		return fmt.Errorf("%d of %d attacks did not hold", rows-held, rows)
	}
	return nil
}

// short cuts what would make the table too wide, at its end.
func short(s string, most int) string {
	runes := []rune(strings.TrimSpace(s))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
