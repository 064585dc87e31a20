package execution_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/preheat-dev/preheat/api/execution"
)

func TestDecode(t *testing.T) {
	document := `{
		"language": "python", "code": "print(1)\n\u0000", "stdin": "a\nb", "args": ["", "\u20ac"], "env": {"A": "", "0": "x"},
		"files": [{"path": "a/b", "content": "AA==", "encoding": "base64"}, {"path": "c"}],
		"limits": {"timeout_seconds": 1.5, "output_bytes": 1, "total_output_bytes": 2, "memory_bytes": 3}, "pool": "p"
	}`
	want := execution.Request{
		Language: "python", Code: "print(1)\n\x00", Stdin: "a\nb", Args: []string{"", "€"}, Env: map[string]string{"A": "", "0": "x"},
		Files:  []execution.File{{Path: "a/b", Content: "AA==", Encoding: "base64"}, {Path: "c"}},
		Limits: execution.Limits{TimeoutSeconds: 1.5, OutputBytes: 1, TotalOutputBytes: 2, MemoryBytes: 3}, Pool: "p",
	}
	got, problem := execution.Decode([]byte(document))
	if problem != nil {
		t.Fatal(problem)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// Clients that write every member of a class send null for those that are not
// set.
func TestDecodeNullIsLeftOut(t *testing.T) {
	got, problem := execution.Decode([]byte(`{
		"language": "bash", "code": "x", "stdin": null, "args": null, "env": null, "pool": null,
		"files": [{"path": "a", "content": null, "encoding": null}], "limits": {"timeout_seconds": null, "memory_bytes": null}
	}`))
	if problem != nil {
		t.Fatal(problem)
	}
	if want := (execution.Request{Language: "bash", Code: "x", Files: []execution.File{{Path: "a"}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got, problem := execution.Decode([]byte(`{"limits": null}`)); problem != nil || !reflect.DeepEqual(got, execution.Request{}) {
		t.Errorf("got %+v, %v", got, problem)
	}
}

func TestDecodeRefuses(t *testing.T) {
	deep := func(open, end string) string { return strings.Repeat(open, 1<<20) + strings.Repeat(end, 1<<20) }
	for name, test := range map[string]struct {
		document string
		status   int
		field    string
		detail   string // a part of it
	}{
		"nothing":              {"", 400, "", "byte 0 (line 1, column 1)"},
		"white space":          {" \n ", 400, "", "byte 3 (line 2, column 2)"},
		"null":                 {"null", 400, "", "must be a JSON object, not null"},
		"array":                {`[{"code": "x"}]`, 400, "", "not an array"},
		"string":               {`"x"`, 400, "", "not a string"},
		"number":               {`1`, 400, "", "not a number"},
		"boolean":              {`true`, 400, "", "not a boolean"},
		"cut":                  {"{\n\"code\": \"x", 400, "", "unexpected EOF at byte 12 (line 2, column 11)"},
		"two documents":        {`{"code": "x"}{}`, 400, "", "byte 13 (line 1, column 14)"},
		"trailing garbage":     {`{"code": "x"} x`, 400, "", "'x' after top-level value"},
		"trailing comma":       {`{"code": "x",}`, 400, "", "byte 12"},
		"comment":              {`{"code": "x" /* */}`, 400, "", "'/'"},
		"single quotes":        {`{'code': 1}`, 400, "", "byte 1"},
		"line break in text":   {"{\"code\": \"a\nb\"}", 400, "", "byte 11"},
		"NaN":                  {`{"limits": {"timeout_seconds": NaN}}`, 400, "", "'N'"},
		"Infinity":             {`{"limits": {"timeout_seconds": -Infinity}}`, 400, "", "invalid"},
		"leading zero":         {`{"limits": {"timeout_seconds": 01}}`, 400, "", "byte"},
		"byte order mark":      {"\ufeff{}", 400, "", "byte 0"},
		"not UTF-8":            {"{\"code\": \"\xff\"}", 400, "", "UTF-8"},
		"UTF-16":               {"\xff\xfe{\x00}\x00", 400, "", "byte 0"},
		"surrogate":            {`{"code": "\ud800"}`, 400, "", "surrogate"},
		"surrogate, low":       {`{"code": "\udc00x"}`, 400, "", "surrogate"},
		"repeated":             {`{"code": "a", "code": "b"}`, 400, "code", "duplicate"},
		"repeated inside":      {`{"env": {"A": "", "A": ""}}`, 400, "env.A", "duplicate"},
		"repeated, escaped":    {`{"code": "a", "c\u006fde": "b"}`, 400, "code", "duplicate"},
		"deep arrays":          {`{"args": ` + deep("[", "]") + `}`, 400, "", "max depth"},
		"deep objects":         {`{"env": ` + deep(`{"a":`, "}") + `}`, 400, "", "max depth"},
		"deep document":        {deep("[", "]"), 400, "", "not an array"},
		"unknown":              {`{"code": "x", "langauge": "python"}`, 422, "langauge", `"langauge"`},
		"unknown by case":      {`{"Code": "x"}`, 422, "Code", "no field"},
		"unknown, no name":     {`{"": 1}`, 422, "", `""`},
		"unknown in a file":    {`{"files": [{"path": "a"}, {"name": "b"}]}`, 422, "files[1].name", "no field"},
		"unknown limit":        {`{"limits": {"timeout": 1}}`, 422, "limits.timeout", "no field"},
		"code is a number":     {`{"code": 1}`, 422, "code", "a string, not a number"},
		"code is an object":    {`{"code": {"a": 1}}`, 422, "code", "a string, not an object"},
		"args is a string":     {`{"args": "x"}`, 422, "args", "an array, not a string"},
		"argument is a number": {`{"args": ["a", 1]}`, 422, "args[1]", "a string, not a number"},
		"argument is null":     {`{"args": [null]}`, 422, "args[0]", "null"},
		"env is an array":      {`{"env": ["A=1"]}`, 422, "env", "an object, not an array"},
		"variable is null":     {`{"env": {"A": null}}`, 422, "env.A", "null"},
		"variable is number":   {`{"env": {"0": 1}}`, 422, "env.0", "a string, not a number"},
		"files is an object":   {`{"files": {"a": "b"}}`, 422, "files", "an array, not an object"},
		"file is a string":     {`{"files": ["a"]}`, 422, "files[0]", "an object, not a string"},
		"file is null":         {`{"files": [null]}`, 422, "files[0]", "null"},
		"limits is an array":   {`{"limits": []}`, 422, "limits", "an object, not an array"},
		"timeout is a string":  {`{"limits": {"timeout_seconds": "1"}}`, 422, "limits.timeout_seconds", "a number, not a string"},
		"timeout is true":      {`{"limits": {"timeout_seconds": true}}`, 422, "limits.timeout_seconds", "a number, not a boolean"},
		"timeout is endless":   {`{"limits": {"timeout_seconds": 1e999}}`, 422, "limits.timeout_seconds", "out of range"},
		"bytes with fraction":  {`{"limits": {"output_bytes": 1.5}}`, 422, "limits.output_bytes", "fraction"},
		"bytes beyond 64 bit":  {`{"limits": {"memory_bytes": 9223372036854775808}}`, 422, "limits.memory_bytes", "out of range"},
		"bytes as a string":    {`{"limits": {"total_output_bytes": "1"}}`, 422, "limits.total_output_bytes", "a whole number, not a string"},
		"a long name":          {`{"` + strings.Repeat("x", 1<<20) + `": 1}`, 422, strings.Repeat("x", 64) + "…", "no field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problem := execution.Decode([]byte(test.document))
			if problem == nil {
				t.Fatal("accepted")
			}
			if problem.Status != test.status || problem.Field != test.field || !strings.Contains(problem.Detail, test.detail) {
				t.Errorf("%d, field %q: %s", problem.Status, problem.Field, problem.Detail)
			}
		})
	}
}

func TestDecodeObject(t *testing.T) {
	members, problem := execution.DecodeObject([]byte(` {"a": 1, "b": {"c": [null]}} `))
	if problem != nil || len(members) != 2 || string(members["b"]) != `{"c": [null]}` {
		t.Errorf("got %v, %v", members, problem)
	}
	for _, document := range []string{``, `null`, `[]`, `"x"`, `{"a": 1, "a": 2}`, `{"a": "\ud800"}`, `{} {}`, "{\"a\": \"\xff\"}"} {
		if members, problem := execution.DecodeObject([]byte(document)); problem == nil || problem.Status != http.StatusBadRequest {
			t.Errorf("%s: %v, %v", document, members, problem)
		}
	}
}

// What Decode accepts is the same after another round trip; what it refuses is
// the caller's mistake, said in few words.
func FuzzDecode(f *testing.F) {
	for _, document := range []string{
		`{"language": "python", "code": "print(1)"}`, `{"args": ["a"], "env": {"A": "b"}, "stdin": "\ud83d\ude00"}`,
		`{"files": [{"path": "a/b", "content": "x", "encoding": "utf-8"}], "limits": {"timeout_seconds": 1e-3, "output_bytes": 5}}`,
		`{"limits": {"timeout_seconds": -0}}`, `{"pool": null, "limits": {}}`, `{"code": 1}`, `{"code": "a", "code": "b"}`, `nul`, `[`, "{\"\xff\": 1}",
		`{"env": {"~1": "", "/": "", "a/b~0": null}}`, `{"a\u0000": 1}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		r, problem := execution.Decode(document)
		if problem != nil {
			if problem.Status != 400 && problem.Status != 422 {
				t.Errorf("status %d", problem.Status)
			}
			if len(problem.Detail)+len(problem.Field) > 2000 || problem.Detail == "" {
				t.Errorf("a problem of %d and %d bytes", len(problem.Detail), len(problem.Field))
			}
			if !utf8.ValidString(problem.Detail) || !utf8.ValidString(problem.Field) {
				t.Errorf("not text: %q %q", problem.Field, problem.Detail)
			}
			return
		}
		once := encode(t, r)
		again, problem := execution.Decode(once)
		if problem != nil {
			t.Fatalf("%s becomes %s: %v", document, once, problem)
		}
		if twice := encode(t, again); string(once) != string(twice) {
			t.Errorf("%s becomes %s becomes %s", document, once, twice)
		}
	})
}

func encode(t *testing.T, r execution.Request) []byte {
	t.Helper()
	b, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
