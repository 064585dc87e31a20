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

func TestDocuments(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	checkAll(t, map[string]bad{
		"empty":             {"", 400, "", "byte 0", nil},
		"null":              {"null", 400, "", "not null", nil},
		"array":             {`[{"language": "python", "code": "1"}]`, 400, "", "not an array", nil},
		"string":            {`"{}"`, 400, "", "not a string", nil},
		"not JSON":          {"{\n  \"code\": print\n}", 400, "", "byte 12 (line 2, column 11)", nil},
		"cut":               {`{"language": "python", "code": "pri`, 400, "", "unexpected EOF", nil},
		"trailing garbage":  {with(`"args": []`) + "x", 400, "", "after top-level value", nil},
		"two":               {with(`"args": []`) + with(`"args": []`), 400, "", "after top-level value", nil},
		"form":              {"language=python&code=print(1)", 400, "", "byte 0", nil},
		"repeated":          {with(`"code": "print(2)"`), 400, "code", "duplicate", nil},
		"repeated inside":   {with(`"env": {"A": "1", "A": "2"}`), 400, "env.A", "duplicate", nil},
		"deep":              {deep, 400, "", "not an array", nil},
		"deep inside":       {with(`"args": ` + deep), 400, "", "max depth", nil},
		"not UTF-8":         {"{\"language\": \"python\", \"code\": \"\xff\"}", 400, "", "UTF-8", nil},
		"Latin-1":           {"{\"language\": \"python\", \"code\": \"\xe9\"}", 400, "", "UTF-8", nil},
		"UTF-16":            {"\xfe\xff\x00{\x00}", 400, "", "byte 0", nil},
		"lone surrogate":    {`{"language": "python", "code": "\ud800"}`, 400, "", "surrogate", nil},
		"NaN":               {with(`"limits": {"timeout_seconds": NaN}`), 400, "", "'N'", nil},
		"Infinity":          {with(`"limits": {"timeout_seconds": Infinity}`), 400, "", "'I'", nil},
		"unknown":           {with(`"timeout": 5`), 422, "timeout", `"timeout"`, nil},
		"unknown inside":    {with(`"limits": {"timeout": 5}`), 422, "limits.timeout", "no field", nil},
		"unknown by case":   {with(`"Stdin": ""`), 422, "Stdin", "no field", nil},
		"number as text":    {with(`"limits": {"timeout_seconds": "5"}`), 422, "limits.timeout_seconds", "a number, not a string", nil},
		"text as number":    {with(`"stdin": 5`), 422, "stdin", "a string, not a number", nil},
		"null argument":     {with(`"args": [null]`), 422, "args[0]", "null", nil},
		"a megabyte's name": {`{"` + strings.Repeat("x", 1<<20) + `": 1}`, 422, strings.Repeat("x", 64) + "…", "no field", nil},
	})
}

func TestValues(t *testing.T) {
	checkAll(t, map[string]bad{
		"no code":             {`{"language": "python"}`, 422, "code", "empty", nil},
		"empty code":          {`{"language": "python", "code": ""}`, 422, "code", "empty", nil},
		"white space":         {`{"language": "python", "code": " \n\t"}`, 422, "code", "empty", nil},
		"null code":           {`{"language": "python", "code": null}`, 422, "code", "empty", nil},
		"no language":         {`{"code": "1"}`, 422, "language", "missing", nil},
		"empty language":      {`{"language": "", "code": "1"}`, 422, "language", "missing", nil},
		"unknown language":    {`{"language": "cobol", "code": "1"}`, 404, "language", "python", nil},
		"a long language":     {`{"language": "` + strings.Repeat("x", 1<<20) + `", "code": "1"}`, 404, "language", "…", nil},
		"unknown pool":        {with(`"pool": "gpu"`), 404, "pool", `"gpu"`, nil},
		"a long pool":         {with(`"pool": "` + strings.Repeat("x", 1<<20) + `"`), 404, "pool", "…", nil},
		"the other pool":      {with(`"pool": "javascript"`), 404, "language", "javascript", nil},
		"too long":            {with(`"limits": {"timeout_seconds": 300.5}`), 422, "limits.timeout_seconds", "300", nil},
		"negative":            {with(`"limits": {"timeout_seconds": -1}`), 422, "limits.timeout_seconds", "0.001", nil},
		"too short":           {with(`"limits": {"timeout_seconds": 1e-9}`), 422, "limits.timeout_seconds", "0.001", nil},
		"endless":             {with(`"limits": {"timeout_seconds": 1e999}`), 422, "limits.timeout_seconds", "out of range", nil},
		"too much output":     {with(`"limits": {"output_bytes": 16777217}`), 422, "limits.output_bytes", "16777216", nil},
		"negative output":     {with(`"limits": {"output_bytes": -1}`), 422, "limits.output_bytes", "from 1", nil},
		"half a byte":         {with(`"limits": {"output_bytes": 0.5}`), 422, "limits.output_bytes", "fraction", nil},
		"too much in total":   {with(`"limits": {"total_output_bytes": 1073741825}`), 422, "limits.total_output_bytes", "1073741824", nil},
		"too much memory":     {with(`"limits": {"memory_bytes": 9223372036854775807}`), 422, "limits.memory_bytes", "536870912", nil},
		"too little memory":   {with(`"limits": {"memory_bytes": 1}`), 422, "limits.memory_bytes", "33554432", nil},
		"beyond 64 bits":      {with(`"limits": {"memory_bytes": 18446744073709551616}`), 422, "limits.memory_bytes", "out of range", nil},
		"NUL in an argument":  {with(`"args": ["a\u0000"]`), 422, "args[0]", "NUL", nil},
		"too many arguments":  {with(`"args": [""` + strings.Repeat(`,""`, 1000) + `]`), 422, "args", "1000", nil},
		"a large argument":    {with(`"args": ["` + strings.Repeat("x", 128<<10) + `"]`), 422, "args[0]", "131071", nil},
		"no variable's name":  {with(`"env": {"": "x"}`), 422, "env.", "name", nil},
		"= in a name":         {with(`"env": {"A=B": "x"}`), 422, "env.A=B", "name", nil},
		"NUL in a value":      {with(`"env": {"A": "\u0000"}`), 422, "env.A", "NUL", nil},
		"NUL in a name":       {with(`"env": {"A\u0000": ""}`), 422, "env.A\x00", "NUL", nil},
		"reserved":            {with(`"env": {"_PREHEAT_IMPORT": "os"}`), 422, "env._PREHEAT_IMPORT", "reserved", nil},
		"a large value":       {with(`"env": {"A": "` + strings.Repeat("x", 128<<10) + `"}`), 422, "env.A", "131071", nil},
		"a variable's number": {with(`"env": {"A": 1}`), 422, "env.A", "a string, not a number", nil},
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
		"upwards":           {file("../x"), 422, "files[0].path", "inside", nil},
		"absolute":          {file("/etc/x"), 422, "files[0].path", "relative", nil},
		"upwards inside":    {file("ok", "a/../../x"), 422, "files[1].path", "inside", nil},
		"empty":             {file(""), 422, "files[0].path", "empty", nil},
		"NUL":               {file(`a\u0000b`), 422, "files[0].path", "NUL", nil},
		"twice":             {file("a", "a"), 422, "files[1].path", "Another", nil},
		"file, then folder": {file("a", "a/b"), 422, "files[1].path", `"a"`, nil},
		"folder, then file": {file("a/b", "a"), 422, "files[1].path", "Another", nil},
		"the program":       {file("main.py"), 422, "files[0].path", "program", nil},
		"below the program": {file("main.py/x"), 422, "files[0].path", "program", nil},
		"long":              {file(strings.Repeat("x", 256)), 422, "files[0].path", "255", nil},
		"many":              {file(slices.Repeat([]string{"a"}, 101)...), 422, "files", "100", nil},
		"no path":           {with(`"files": [{"content": "x"}]`), 422, "files[0].path", "empty", nil},
		"not base64":        {with(`"files": [{"path": "a", "content": "?", "encoding": "base64"}]`), 422, "files[0].content", "base64", nil},
		"encoding":          {with(`"files": [{"path": "a", "content": "", "encoding": "gzip"}]`), 422, "files[0].encoding", "base64", nil},
		"a map of files":    {with(`"files": {"a": "x"}`), 422, "files", "an array, not an object", nil},
	})
}

// CASES.md S10: what is not refused arrives exactly as it was sent, and names
// with a meaning reach nothing but the program.
func TestVariablesArriveExactly(t *testing.T) {
	env := map[string]string{"A": "x'; import os #", "B": "", "PATH": "/x", "LD_PRELOAD": "y", "C": "é\n\\$(id)`\"", "a b": "1", "PYTHONPATH": "/nowhere", "HOME": "/y"}
	r := shared.Execute(t, execution.Request{
		Language: "python", Env: env, Args: []string{"-c", "", "a b", "*", "--help"},
		Code: "import json, os, sys\njson.dump([dict(os.environ), sys.argv[1:]], sys.stdout)",
	})
	var got []json.RawMessage
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || len(got) != 2 {
		t.Fatalf("%v in %+v", err, r)
	}
	var environ map[string]string
	if err := json.Unmarshal(got[0], &environ); err != nil {
		t.Fatal(err)
	}
	for name, value := range env {
		if seen, ok := environ[name]; !ok || seen != value {
			t.Errorf("%s is %q", name, seen)
		}
	}
	if string(got[1]) != `["-c", "", "a b", "*", "--help"]` {
		t.Errorf("arguments %s", got[1])
	}
	for name := range environ {
		if strings.Contains(name, "PREHEAT") {
			t.Errorf("the program sees %s", name)
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
