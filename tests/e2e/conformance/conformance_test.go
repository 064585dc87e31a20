// Package conformance holds the running product to the CloudEvents
// specifications, statement by statement, and writes down in
// docs/conformance.md what was sent and what came back.
//
//	UPDATE=1 go test ./tests/e2e/conformance
package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared)) }

// row is a statement of a specification, and a message that puts it to the
// test.
type row struct {
	// section of the specification, level of the statement (MUST, SHOULD, MAY)
	// and what it says.
	section, level, says string
	send                 *message
	// want is the answer, as suite.answered describes it, with the attributes
	// of the reply that show names.
	want string
	show []string
	// but says why the statement is not kept to the letter, or does not apply.
	but string
}

// table is the rows of one specification.
type table struct {
	title, about string
	rows         []row
}

// suite is what the rows share.
type suite struct {
	responses, events *openapi.Document
	sent              int
	// replies counts the replies of each source and id.
	replies map[string]int
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	responses, err := openapi.Parse(execution.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	events, err := openapi.Parse(execution.AsyncAPI())
	if err == nil {
		err = events.AddNeighbour("openapi.yaml", execution.OpenAPI())
	}
	if err != nil {
		t.Fatal(err)
	}
	return &suite{responses: responses, events: events, replies: map[string]int{}}
}

// run sends a row's message and returns the description of the answer.
func (s *suite) run(t *testing.T, r row) string {
	t.Helper()
	s.sent++
	unique := fmt.Sprintf("message-%d", s.sent)
	wantID := r.send.id
	if wantID == id {
		wantID = unique
	}
	text := r.send.text(strings.TrimPrefix(shared.URL, "http://"), unique)
	exchange := func() (string, string) {
		res, got := send(t, text)
		res.Request = &http.Request{Method: r.send.method}
		return s.answered(t, res, got, wantID, r.show), replyID(res, got)
	}
	answer, first := exchange()
	if !r.send.again {
		return answer
	}
	if _, second := exchange(); second != first || first == "" {
		return answer + ", then another reply"
	}
	s.replies["/preheat/execute "+first]--
	return answer + ", twice the same"
}

// replyID is the id of a reply in either mode, or nothing.
func replyID(res *http.Response, got []byte) string {
	var structured struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(got, &structured); err == nil && structured.ID != "" {
		return structured.ID
	}
	return res.Header.Get("Ce-Id")
}

// Every statement is kept as the table says, and the page shows it.
func TestConformance(t *testing.T) {
	s := newSuite(t)
	var b strings.Builder
	b.WriteString(preface)
	for _, table := range tables() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| section | statement | sent | answered | kept |\n|---|---|---|---|---|\n", table.title, table.about)
		for _, r := range table.rows {
			got, kept := s.run(t, r), "yes"
			switch {
			case got != r.want:
				t.Errorf("%s, %s, %s: answered %q instead of %q", r.section, r.says, strings.Join(r.send.shown, ", "), got, r.want)
				kept = "**no**"
			case r.but != "":
				kept = r.but
			}
			fmt.Fprintf(&b, "| %s | %s: %s | %s | %s | %s |\n", r.section, r.level, cell(r.says), cell(strings.Join(r.send.shown, ", ")), cell(got), cell(kept))
		}
	}
	for reply, n := range s.replies {
		if n != 1 {
			t.Errorf("the reply %s came %d times", reply, n)
		}
	}
	page := filepath.Join(product.Root(t), "docs", "conformance.md")
	if os.Getenv("UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(text), b.String())
}

// compare reports the first line in which the page is not what was found.
func compare(t *testing.T, page, found string) {
	t.Helper()
	is, want := strings.Split(page, "\n"), strings.Split(found, "\n")
	for i := range max(len(is), len(want)) {
		if at := func(lines []string) string { return slices.Concat(lines, make([]string, max(0, i+1-len(lines))))[i] }; at(is) != at(want) {
			t.Fatalf("docs/conformance.md, line %d (UPDATE=1 writes it anew):\n%s\ninstead of\n%s", i+1, at(is), at(want))
		}
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

const preface = `<!-- Written by tests/e2e/conformance. Do not edit: UPDATE=1 go test ./tests/e2e/conformance -->

# How Preheat keeps to CloudEvents

Each line is a statement of a CloudEvents specification that applies to whoever receives an event and replies to it, and a
message that puts it to the test. A test sends these messages to the running server, byte by byte, and fails if this page
does not say what came back.

* *sent* is the mode and what differs from a good event of type ` + "`dev.preheat.execution.requested`" + ` with an id of its own, whose data is
  ` + "`" + program + "`" + `.
* *answered* is the status; *completed* is a ` + "`dev.preheat.execution.completed`" + ` event in the mode that is named, and *names* the
  attribute that the problem document points at. No error is an event.
* Every completed event of this page passed the validation of the CloudEvents SDK and of ` + "`/asyncapi.yaml`" + `, has an id that no other
  has, the decoded id of the request as ` + "`causationid`" + `, and a JSON object, the result, as its data. In structured mode no attribute is a
  header, in binary mode none is there twice.
* *lenient* marks what a strict receiver would refuse, with the reason.
`
