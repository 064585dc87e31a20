package execution_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

var offered = []execution.Language{{Name: "python", Aliases: []string{"py"}, Pools: []string{"small"}}, {Name: "bash", Pools: []string{"small"}}}

// A request that leaves times out gets the server's, and one that asks for too
// much is refused with the field's name.
func TestSessionRequestIsValidated(t *testing.T) {
	limits := execution.DefaultLimits()
	for _, test := range []struct {
		name    string
		request execution.SessionRequest
		field   string
	}{
		{"the least", execution.SessionRequest{Language: "PY"}, ""},
		{"the maxima", execution.SessionRequest{Language: "bash", Pool: "small", IdleSeconds: 3600, LifetimeSeconds: 86400}, ""},
		{"no language", execution.SessionRequest{}, "language"},
		{"an unknown language", execution.SessionRequest{Language: "cobol"}, "language"},
		{"an unknown pool", execution.SessionRequest{Language: "python", Pool: "large"}, "pool"},
		{"idle for too long", execution.SessionRequest{Language: "python", IdleSeconds: 3601}, "idle_seconds"},
		{"idle for too short", execution.SessionRequest{Language: "python", IdleSeconds: 0.5}, "idle_seconds"},
		{"no number", execution.SessionRequest{Language: "python", IdleSeconds: math.NaN()}, "idle_seconds"},
		{"too long a life", execution.SessionRequest{Language: "python", LifetimeSeconds: 86401}, "lifetime_seconds"},
		{"a negative life", execution.SessionRequest{Language: "python", LifetimeSeconds: -1}, "lifetime_seconds"},
		{"a file outside", execution.SessionRequest{Language: "python", Files: []execution.File{{Path: "../x"}}}, "files[0].path"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, problem := test.request.Validate(offered, limits)
			switch {
			case test.field == "" && problem != nil:
				t.Fatal(problem)
			case test.field != "" && (problem == nil || problem.Field != test.field):
				t.Fatalf("the problem is %v", problem)
			}
			if test.name == "the least" && (spec.Language != "python" || spec.Idle != 10*time.Minute || spec.Lifetime != time.Hour) {
				t.Errorf("it became %+v", spec)
			}
		})
	}
}

// A run has the language, pool and memory of its session.
func TestRunInSessionKeepsToTheSession(t *testing.T) {
	limits := execution.DefaultLimits()
	for _, test := range []struct {
		name    string
		request execution.Request
		field   string
	}{
		{"nothing said", execution.Request{Code: "1"}, ""},
		{"the same by its alias", execution.Request{Code: "1", Language: "py", Pool: "small"}, ""},
		{"a file of the session's", execution.Request{Code: "1", Files: []execution.File{{Path: "a"}}}, ""},
		{"the memory that there is", execution.Request{Code: "1", Limits: execution.Limits{MemoryBytes: limits.Default.MemoryBytes}}, ""},
		{"another language", execution.Request{Code: "1", Language: "bash"}, "language"},
		{"an unknown language", execution.Request{Code: "1", Language: "cobol"}, "language"},
		{"another pool", execution.Request{Code: "1", Pool: "large"}, "pool"},
		{"less memory", execution.Request{Code: "1", Limits: execution.Limits{MemoryBytes: 64 << 20}}, "limits.memory_bytes"},
		{"no program", execution.Request{}, "code"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, problem := test.request.ValidateIn("python", "small", offered, limits)
			switch {
			case test.field == "" && problem != nil:
				t.Fatal(problem)
			case test.field == "" && p.Language != "python":
				t.Errorf("the language is %q", p.Language)
			case test.field != "" && (problem == nil || problem.Field != test.field):
				t.Fatalf("the problem is %v", problem)
			}
		})
	}
}

func TestSessionPaths(t *testing.T) {
	for _, good := range []string{"a", "data/in.csv", "Grüße/日本 語.txt", "main.py", "..a", "a..b"} {
		if problem := execution.CheckSessionPath(good, false); problem != nil {
			t.Errorf("%q: %v", good, problem)
		}
	}
	for _, bad := range []string{"", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "./a", "a/", "a\x00b", "\xff", strings.Repeat("x", 256), strings.Repeat("x/", 512) + "x"} {
		if problem := execution.CheckSessionPath(bad, false); problem == nil || problem.Field != "path" {
			t.Errorf("%q: %v", bad, problem)
		}
	}
	if problem := execution.CheckSessionPath("", true); problem != nil {
		t.Error(problem)
	}
}

func TestSessionIDs(t *testing.T) {
	if id := execution.NewSessionID(); !execution.IsSessionID(id) || id == execution.NewSessionID() {
		t.Errorf("an id is %q", id)
	}
	for _, wrong := range []string{"", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxy", "abcdefghijklmnopqrstuvwxy1", "abcdefghijklmnopqrstuvwxy/"} {
		if execution.IsSessionID(wrong) {
			t.Errorf("%q passes as an id", wrong)
		}
	}
}

// A session's result has what a single one has, and two members more.
func TestSessionResultIsEncodedAsItIs(t *testing.T) {
	r := execution.SessionResult{
		Result: execution.Result{Stdout: "hello", Status: execution.StatusSucceeded, Results: []execution.RichResult{}, Artifacts: []execution.Artifact{}, Notes: []string{}},
		State:  execution.SessionKept, Sequence: 3,
	}
	var got bytes.Buffer
	if err := r.Encode(&got); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got  %s\nwant %s", &got, want)
	}
}

// Who reads a log cannot use the sessions in it.
func TestLoggedPathsHaveNoIDs(t *testing.T) {
	id := execution.NewSessionID()
	for path, want := range map[string]string{
		"/v1/sessions": "/v1/sessions", "/v1/sessions/": "/v1/sessions/", "/v1/limits": "/v1/limits", "/v1/sessions/a/files": "/v1/sessions/a/files",
		"/v1/sessions/" + id:                "/v1/sessions/" + id[:4] + "…",
		"/v1/sessions/" + id + "'":          "/v1/sessions/" + id[:4] + "…",
		"/v1/sessions/" + id + "/files/a/b": "/v1/sessions/" + id[:4] + "…/files/a/b",
		"/v1/sessions/üüüüü":                "/v1/sessions/üü…",
		"/v1/sessions/aaaü":                 "/v1/sessions/aaa…",
	} {
		if got := execution.LoggedPath(path); got != want {
			t.Errorf("%s: %s instead of %s", path, got, want)
		}
	}
}
