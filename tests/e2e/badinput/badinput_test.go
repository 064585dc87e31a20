// Package badinput sends the running product what is no request: each is
// refused with the right status and names what is wrong, none of them uses a
// sandbox up, and the server serves on.
package badinput

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared)) }

// untouched checks that f uses no sandbox up, and that the server serves
// afterwards.
func untouched(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := sandboxes(t)
	f(t)
	if after := sandboxes(t); !slices.Equal(after, before) {
		t.Errorf("the sandboxes were %q and are %q", before, after)
	}
	if r := shared.Python(t, "print(1)"); r.Stdout != "1\n" {
		t.Errorf("afterwards %+v", r)
	}
}

// sandboxes are the names of all sandboxes, once the pools are at rest.
func sandboxes(t *testing.T) (names []string) {
	t.Helper()
	product.Eventually(t, patience, "the pools are at rest", func() bool {
		names = nil
		res, err := http.Get(shared.URL + "/v1/pools")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		var list struct{ Pools []execution.PoolStatus }
		if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
			return false
		}
		for _, p := range list.Pools {
			if p.Warm != p.Desired || p.Warming+p.Claimed+p.Waiting > 0 {
				return false
			}
			for _, s := range p.Sandboxes {
				names = append(names, s.Name)
			}
		}
		return true
	})
	return names
}

// bad is a request and how it is refused.
type bad struct {
	body   string
	status int
	field  string
	detail string // a part of it
	header []string
}

func (b bad) check(t *testing.T) {
	t.Helper()
	for _, more := range [][]string{nil, {"Accept", execution.MediaSSE}} {
		p := shared.Problem(t, b.status, b.body, append(more, b.header...)...)
		if p.Field != b.field || !strings.Contains(p.Detail, b.detail) {
			t.Errorf("field %q: %s", p.Field, p.Detail)
		}
		if len(p.Detail)+len(p.Field) > 2000 {
			t.Errorf("a problem of %d bytes", len(p.Detail))
		}
	}
}

func checkAll(t *testing.T, all map[string]bad) {
	t.Helper()
	untouched(t, func(t *testing.T) {
		for name, b := range all {
			t.Run(name, b.check)
		}
	})
}

// with is a request with more members.
func with(members string) string {
	return `{"language": "python", "code": "print(1)", ` + members + `}`
}

// TestDocuments, TestValues and TestFiles send one request of each class to the
// running product; package execution has the tables of all.
func TestDocuments(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	checkAll(t, map[string]bad{
		"not JSON":          {"{\n  \"code\": print\n}", 400, "", "byte 12 (line 2, column 11)", nil},
		"trailing garbage":  {with(`"args": []`) + "x", 400, "", "after top-level value", nil},
		"repeated":          {with(`"code": "print(2)"`), 400, "code", "duplicate", nil},
		"deep inside":       {with(`"args": ` + deep), 400, "", "max depth", nil},
		"not UTF-8":         {"{\"language\": \"python\", \"code\": \"\xff\"}", 400, "", "UTF-8", nil},
		"NaN":               {with(`"limits": {"timeout_seconds": NaN}`), 400, "", "'N'", nil},
		"unknown":           {with(`"timeout": 5`), 422, "timeout", `"timeout"`, nil},
		"text as number":    {with(`"stdin": 5`), 422, "stdin", "a string, not a number", nil},
		"a megabyte's name": {`{"` + strings.Repeat("x", 1<<20) + `": 1}`, 422, strings.Repeat("x", 64) + "…", "no field", nil},
	})
}

func TestValues(t *testing.T) {
	checkAll(t, map[string]bad{
		"empty code":         {`{"language": "python", "code": ""}`, 422, "code", "empty", nil},
		"unknown language":   {`{"language": "cobol", "code": "1"}`, 404, "language", "python", nil},
		"a long language":    {`{"language": "` + strings.Repeat("x", 1<<20) + `", "code": "1"}`, 404, "language", "…", nil},
		"the other pool":     {with(`"pool": "javascript"`), 404, "language", "javascript", nil},
		"too long":           {with(`"limits": {"timeout_seconds": 300.5}`), 422, "limits.timeout_seconds", "300", nil},
		"too much memory":    {with(`"limits": {"memory_bytes": 9223372036854775807}`), 422, "limits.memory_bytes", "536870912", nil},
		"NUL in an argument": {with(`"args": ["a\u0000"]`), 422, "args[0]", "NUL", nil},
		"= in a name":        {with(`"env": {"A=B": "x"}`), 422, "env.A=B", "name", nil},
		"reserved":           {with(`"env": {"_PREHEAT_IMPORT": "os"}`), 422, "env._PREHEAT_IMPORT", "reserved", nil},
		"a large value":      {with(`"env": {"A": "` + strings.Repeat("x", 128<<10) + `"}`), 422, "env.A", "131071", nil},
	})
}

// CASES.md S8: a file that would leave its folder, or cannot be there.
func TestFiles(t *testing.T) {
	file := func(paths ...string) string {
		var list []string
		for _, p := range paths {
			list = append(list, fmt.Sprintf(`{"path": "%s", "content": "x"}`, p))
		}
		return with(`"files": [` + strings.Join(list, ", ") + `]`)
	}
	checkAll(t, map[string]bad{
		"absolute":          {file("/etc/x"), 422, "files[0].path", "relative", nil},
		"upwards inside":    {file("ok", "a/../../x"), 422, "files[1].path", "inside", nil},
		"file, then folder": {file("a", "a/b"), 422, "files[1].path", `"a"`, nil},
		"the program":       {file("main.py"), 422, "files[0].path", "program", nil},
		"many":              {file(slices.Repeat([]string{"a"}, 101)...), 422, "files", "100", nil},
		"not base64":        {with(`"files": [{"path": "a", "content": "?", "encoding": "base64"}]`), 422, "files[0].content", "base64", nil},
		"encoding":          {with(`"files": [{"path": "a", "content": "", "encoding": "gzip"}]`), 422, "files[0].encoding", "base64", nil},
	})
}

// Nothing that the platform sets for itself reaches a program, in an interpreter
// that has waited or in a new one.
func TestVariablesOfThePlatformStayOutside(t *testing.T) {
	for _, env := range []map[string]string{nil, {"PYTHONPATH": "/nowhere"}} {
		r := shared.Execute(t, execution.Request{Language: "python", Code: "import os\nprint(dict(os.environ))", Env: env})
		if r.Status != execution.StatusSucceeded || strings.Contains(r.Stdout, "PREHEAT") {
			t.Errorf("%+v", r)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	good := with(`"args": []`)
	media := func(header ...string) bad { return bad{good, 415, "", "", header} }
	checkAll(t, map[string]bad{
		"none":        media("Content-Type", ""),
		"text":        media("Content-Type", "text/plain"),
		"form":        media("Content-Type", "application/x-www-form-urlencoded"),
		"multipart":   media("Content-Type", "multipart/form-data; boundary=x"),
		"text JSON":   media("Content-Type", "text/json"),
		"malformed":   media("Content-Type", "application/json;;x"),
		"two":         media("Content-Type", "application/json, text/plain"),
		"Latin-1":     media("Content-Type", "application/json; charset=latin-1"),
		"UTF-16":      media("Content-Type", "application/json; charset=utf-16"),
		"gzip":        {string(zipped(t, []byte(good))), 415, "", "gzip", []string{"Content-Encoding", "gzip"}},
		"a gzip bomb": {string(zipped(t, make([]byte, 100<<20))), 415, "", "gzip", []string{"Content-Encoding", "gzip"}},
		"unknown":     media("Content-Encoding", "rot13"),
	})
	for _, header := range []string{"application/json; charset=UTF-8", "Application/JSON", "application/vnd.preheat+json"} {
		if res, body := shared.Post(t, "/v1/sandbox/execute", good, "Content-Type", header); res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d: %s", header, res.StatusCode, body)
		}
	}
}

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
