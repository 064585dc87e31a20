package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

// I13: what a run leaves is there in the next one, and each run says so.
func TestI13ARunFindsWhatTheOnesBeforeItLeft(t *testing.T) {
	s := open(t, shared, `{"language":"py","files":[{"path":"data/in.txt","content":"given"}]}`)
	s.prints("import math, os\nx = [1]\ndef f(): return x\nos.chdir('data')", "", execution.SessionFresh)
	s.prints("x.append(math.floor(2.5)); print(f(), open('in.txt').read())", "[1, 2] given\n", execution.SessionKept)
	s.prints("class C: pass\nc = C(); c.me = c\nprint(c.me is c)", "True\n", execution.SessionKept)
	r := s.run("1/0")
	if r.Status != execution.StatusFailed || r.ExitCode != 1 || r.State != execution.SessionKept || r.Sequence != 4 || !strings.Contains(r.Stderr, `File "<cell 4>", line 1`) {
		t.Errorf("an exception: %+v", r)
	}
	if r := s.run("exit(3)"); r.ExitCode != 3 || r.State != execution.SessionKept {
		t.Errorf("an exit: %+v", r)
	}
	if r := s.run("open('out.txt', 'w').write('out')"); len(r.Artifacts) != 1 || r.Artifacts[0].Path != "data/out.txt" {
		t.Errorf("the artifacts are those that this run wrote: %+v", r.Artifacts)
	}
	if r := s.run("x"); len(r.Results) != 1 || r.Results[0].Data != "[1, 2]" || len(r.Artifacts) != 0 {
		t.Errorf("the last value: %+v", r)
	}
	if d := s.describe(); d.Sequence != 7 || d.Running != nil || d.SandboxName != r.SandboxName {
		t.Errorf("the session is %+v", d)
	}
}

// A stream of a run has the events of a single one, and the state at its end.
func TestRunAsStream(t *testing.T) {
	s := open(t, shared, python)
	s.run("x = 5")
	res := do(t, shared, "POST", s.path+"/execute", request("print(x)\nx", ""), "Accept", execution.MediaSSE)
	events, err := openapi.ParseEvents([]byte(res.body))
	if err != nil || len(events) != 4 {
		t.Fatalf("%v: %s", err, res.body)
	}
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	var exit execution.SessionExit
	if err := json.Unmarshal([]byte(events[3].Data), &exit); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "start stdout result exit" || exit.State == nil || *exit.State != execution.SessionKept || *exit.Sequence != 2 {
		t.Errorf("%s: %+v", got, exit)
	}
	if res := do(t, shared, "POST", s.path+"/execute", request("print(x)", ""), "Accept", execution.MediaSSE, "Last-Event-ID", "1"); res.StatusCode != http.StatusNoContent {
		t.Errorf("a stream that comes again: %s", res.Status)
	}
	if d := s.describe(); d.Sequence != 2 {
		t.Errorf("it was run: %+v", d)
	}
}

// I1, I13: nobody finds anything of a session but who has its id.
func TestI1SessionsNeverSeeEachOther(t *testing.T) {
	one, other := open(t, shared, python), open(t, shared, python)
	leave := "secret = 1; open('/work/secret', 'w').write('a'); open('/tmp/secret', 'w').write('a'); open('/dev/shm/secret', 'w').write('a')"
	look := "import os; print('secret' in globals(), [d for d in ('/work', '/tmp', '/dev/shm') if os.path.exists(d + '/secret')])"
	one.run(leave)
	other.prints(look, "False []\n", execution.SessionFresh)
	res := do(t, shared, "POST", "/v1/sandbox/execute", `{"language":"python","code":"`+look+`"}`)
	var single execution.Result
	if err := json.Unmarshal([]byte(res.body), &single); err != nil || single.Stdout != "False []\n" {
		t.Errorf("a single run: %s", res.body)
	}
	if one.SandboxName == other.SandboxName || single.SandboxName == one.SandboxName || single.SandboxName == other.SandboxName {
		t.Errorf("a sandbox is shared: %s, %s, %s", one.SandboxName, other.SandboxName, single.SandboxName)
	}
	if res := do(t, shared, "GET", "/v1/sessions", ""); !strings.Contains(res.body, one.SandboxName) || strings.Contains(res.body, one.ID) {
		t.Errorf("the list: %s", res.body)
	}
	if strings.Contains(shared.Log(), one.ID) {
		t.Error("the log has an id, with which its readers could use the session")
	}
	if res := do(t, shared, "GET", other.path+"/files", ""); strings.Contains(res.body, "secret") {
		t.Errorf("files: %s", res.body)
	}
}

// I8: at its time limit a program is interrupted, and only one that takes no
// interrupt costs the state. Files stay in any case.
func TestTimeLimit(t *testing.T) {
	s := open(t, shared, python)
	s.run("x = 5; open('f', 'w').write('kept')")
	r := s.runWithin("import time\nprint('on', flush=True)\ntime.sleep(60)", `"timeout_seconds":0.5`)
	if r.Status != execution.StatusTimedOut || r.State != execution.SessionKept || r.Stdout != "on\n" || !strings.Contains(r.Stderr, "KeyboardInterrupt") {
		t.Errorf("a program that sleeps: %+v", r)
	}
	s.prints("print(x)", "5\n", execution.SessionKept)
	r = s.runWithin("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", `"timeout_seconds":0.5`)
	if r.Status != execution.StatusTimedOut || r.State != execution.SessionLost || r.ExitCode != 137 {
		t.Errorf("a program that takes no interrupt: %+v", r)
	}
	s.prints("print('x' in globals(), open('f').read())", "False kept\n", execution.SessionFresh)
	s.prints("print(1)", "1\n", execution.SessionKept)
}

// A program that takes all memory costs the state, and says so.
func TestOutOfMemoryInTheThirdOfFiveRuns(t *testing.T) {
	s := open(t, shared, python)
	s.prints("x = 5", "", execution.SessionFresh)
	s.prints("open('f', 'w').write(str(x))", "", execution.SessionKept)
	if r := s.run("keep = []\nwhile True: keep.append(b'x' * (16 << 20))"); r.Status != execution.StatusOutOfMemory || r.State != execution.SessionLost {
		t.Errorf("the third run: %+v", r)
	}
	s.prints("print(open('f').read(), 'x' in globals())", "5 False\n", execution.SessionFresh)
	s.prints("print(1)", "1\n", execution.SessionKept)
}

func TestInterruptOverHTTP(t *testing.T) {
	s := open(t, shared, python)
	s.run("x = 5")
	problem(t, do(t, shared, "POST", s.path+"/interrupt", ""), execution.ProblemNothingRuns)
	ended := s.begin("import time\ntime.sleep(600)")
	busy := problem(t, do(t, shared, "POST", s.path+"/execute", request("1", "")), execution.ProblemSessionBusy)
	if d := s.describe(); d.Running == nil || busy.Running != *d.Running {
		t.Errorf("%q runs, by the session %v", busy.Running, d.Running)
	}
	if res := do(t, shared, "POST", s.path+"/interrupt", ""); res.StatusCode != http.StatusAccepted {
		t.Errorf("the interrupt: %s", res.Status)
	}
	var r execution.SessionResult
	res := <-ended
	if err := json.Unmarshal([]byte(res.body), &r); err != nil || r.Status != execution.StatusCancelled || r.ExitCode != 130 || r.State != execution.SessionKept {
		t.Errorf("the interrupted run: %s", res.body)
	}
	s.prints("print(x)", "5\n", execution.SessionKept)
}

// Each end of a session is said to its next caller.
func TestEndsOfSessions(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		s := open(t, shared, python)
		ended := s.begin("import time\ntime.sleep(600)")
		for range 2 {
			if res := do(t, shared, "DELETE", s.path, ""); res.StatusCode != http.StatusNoContent {
				t.Errorf("%s: %s", res.Status, res.body)
			}
		}
		if res := <-ended; res.Response == nil || res.StatusCode == http.StatusOK && !strings.Contains(res.body, `"state":"lost"`) {
			t.Errorf("the run that went on: %s", res.body)
		}
		s.ends(execution.SessionClosed)
		problem(t, do(t, shared, "PUT", s.path+"/files/a", "x"), execution.ProblemSessionEnded)
	})
	t.Run("idle", func(t *testing.T) {
		open(t, shared, `{"language":"python","idle_seconds":1}`).ends(execution.SessionIdle)
	})
	t.Run("expired", func(t *testing.T) {
		open(t, shared, `{"language":"python","lifetime_seconds":1}`).ends(execution.SessionExpired)
	})
	t.Run("sandbox lost", func(t *testing.T) {
		s := open(t, shared, python)
		for _, pid := range product.InSandbox(t, s.SandboxName) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		s.ends(execution.SessionSandboxLost)
	})
}

// Bad input is refused by a problem of its own that names what is wrong.
func TestBadInput(t *testing.T) {
	s := open(t, shared, python)
	unknown := "/v1/sessions/" + strings.Repeat("a", 26)
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		kind                     execution.ProblemType
		field                    string
	}{
		{"no JSON", "POST", "/v1/sessions", `{`, 400, execution.ProblemMalformed, ""},
		{"no language", "POST", "/v1/sessions", `{}`, 422, execution.ProblemInvalidValue, "language"},
		{"unknown language", "POST", "/v1/sessions", `{"language":"cobol"}`, 404, execution.ProblemNotFound, "language"},
		{"unknown pool", "POST", "/v1/sessions", `{"language":"python","pool":"x"}`, 404, execution.ProblemNotFound, "pool"},
		{"unknown member", "POST", "/v1/sessions", `{"language":"python","image":"x"}`, 422, execution.ProblemInvalidValue, "image"},
		{"too long idle", "POST", "/v1/sessions", `{"language":"python","idle_seconds":3601}`, 422, execution.ProblemInvalidValue, "idle_seconds"},
		{"too short idle", "POST", "/v1/sessions", `{"language":"python","idle_seconds":0.5}`, 422, execution.ProblemInvalidValue, "idle_seconds"},
		{"too long a life", "POST", "/v1/sessions", `{"language":"python","lifetime_seconds":86401}`, 422, execution.ProblemInvalidValue, "lifetime_seconds"},
		{"a file outside", "POST", "/v1/sessions", `{"language":"python","files":[{"path":"../x"}]}`, 422, execution.ProblemInvalidValue, "files[0].path"},
		{"unknown session", "GET", unknown, "", 404, execution.ProblemNotFound, ""},
		{"run in an unknown session", "POST", unknown + "/execute", `{"code":"1"}`, 404, execution.ProblemNotFound, ""},
		{"end of an unknown session", "DELETE", unknown, "", 404, execution.ProblemNotFound, ""},
		{"no id", "GET", "/v1/sessions/x", "", 404, execution.ProblemNotFound, ""},
		{"another language", "POST", s.path + "/execute", `{"code":"1","language":"bash"}`, 422, execution.ProblemInvalidValue, "language"},
		{"another pool", "POST", s.path + "/execute", `{"code":"1","pool":"x"}`, 422, execution.ProblemInvalidValue, "pool"},
		{"more memory", "POST", s.path + "/execute", request("1", `"memory_bytes":1073741824`), 422, execution.ProblemInvalidValue, "limits.memory_bytes"},
		{"less memory", "POST", s.path + "/execute", request("1", `"memory_bytes":67108864`), 422, execution.ProblemInvalidValue, "limits.memory_bytes"},
		{"no code", "POST", s.path + "/execute", `{}`, 422, execution.ProblemInvalidValue, "code"},
		{"read outside", "GET", s.path + "/files/..%2f..%2fetc%2fpasswd", "", 422, execution.ProblemInvalidValue, "path"},
		{"write outside", "PUT", s.path + "/files/%2e%2e/x", "x", 422, execution.ProblemInvalidValue, "path"},
		{"remove outside", "DELETE", s.path + "/files/%2fetc", "", 422, execution.ProblemInvalidValue, "path"},
		{"missing file", "GET", s.path + "/files/missing", "", 404, execution.ProblemNotFound, "path"},
		{"a method that is none", "PUT", s.path, "", 405, execution.ProblemMethodNotAllowed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := do(t, shared, test.method, test.path, test.body)
			if p := problem(t, res, test.kind); res.StatusCode != test.status || p.Field != test.field {
				t.Errorf("%s, field %q instead of %q: %s", res.Status, p.Field, test.field, res.body)
			}
		})
	}
	s.prints("print(1)", "1\n", execution.SessionFresh)
}

// No session is ended for another one: who finds none free is refused, in words
// and by status.
func TestLimits(t *testing.T) {
	p := product.Start(t, "PREHEAT_MAX_SESSIONS=2", "PREHEAT_MAX_POOL_SESSIONS=2", "PREHEAT_MAX_SANDBOXES=2", "PREHEAT_QUEUE_TIMEOUT=1s")
	var limits execution.ServerLimits
	p.Get(t, "/v1/limits", &limits)
	if l := limits.Sessions; l.Open != 2 || l.OpenPerPool != 2 || l.MaximumIdleSeconds != 3600 {
		t.Errorf("the limits are %+v", l)
	}
	var all []*session
	for i := range 2 {
		all = append(all, open(t, p, python))
		all[i].run(fmt.Sprintf("x = %d", i))
	}
	res := do(t, p, "POST", "/v1/sessions", python)
	if problem(t, res, execution.ProblemTooManySessions); res.Header.Get("Retry-After") == "" {
		t.Errorf("there is no Retry-After: %s", res.body)
	}
	problem(t, do(t, p, "POST", "/v1/sandbox/execute", `{"language":"python","code":"1"}`), execution.ProblemNoSandbox)
	for i, s := range all {
		s.prints("print(x)", fmt.Sprintf("%d\n", i), execution.SessionKept)
	}
	do(t, p, "DELETE", all[0].path, "")
	s := open(t, p, python)
	s.prints("print('x' in globals())", "False\n", execution.SessionFresh)
}

// I4: with the server its sessions end, however it ends.
func TestI4ServersLeaveNoSessions(t *testing.T) {
	for name, end := range map[string]func(*product.Product){
		"stopped": func(p *product.Product) { p.Stop(t) },
		"killed":  func(p *product.Product) { p.Kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			state := product.StateDir(t)
			p := product.StartIn(t, state)
			s := open(t, p, python)
			s.run("import subprocess; subprocess.Popen(['sleep', '3600'], start_new_session=True)")
			s.begin("import time\ntime.sleep(600)")
			end(p)
			product.Eventually(t, patience, "the session's processes end", func() bool { return len(product.InSandbox(t, s.SandboxName)) == 0 })
			if name == "killed" {
				p = product.StartIn(t, state) // takes away what a killed one could not
				problem(t, do(t, p, "GET", s.path, ""), execution.ProblemNotFound)
				p.Stop(t)
			}
			if left := p.Leftovers(t); left != (product.Leftovers{}) {
				t.Errorf("the server has left %+v", left)
			}
		})
	}
}
