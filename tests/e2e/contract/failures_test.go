package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

// patience bounds waits about whose length nothing is asserted.
const patience = time.Minute

// occupy has p run a program that only waits. busy is closed when that has
// ended, which end brings about.
func occupy(t *testing.T, p *product.Product) (busy <-chan struct{}, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.StreamTo(ctx, python("import time; time.sleep(60)"), func(e product.Event) {
			if e.Name == execution.EventStart {
				close(started)
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-started:
	case <-ended:
		t.Fatal("the program did not start")
	}
	return ended, cancel
}

// waiting is a program that writes "partly", takes this for its name, which
// tells the test so, and waits.
const waiting = `{
	"language": "python", "limits": {"timeout_seconds": %g},
	"code": "print('partly', flush=True)\nopen('/proc/self/comm', 'w').write('partly')\nimport time; time.sleep(60)"
}`

// sent is the response to a request that is answered later.
type sent struct {
	res  *http.Response
	body []byte
	err  error
}

func send(p *product.Product, path, body string, header ...string) <-chan sent {
	got := make(chan sent, 1)
	go func() {
		res, body, err := p.Do(context.Background(), path, body, header...)
		got <- sent{res, body, err}
	}()
	return got
}

// checked is what came for s, which the document must describe.
func checked(t *testing.T, s <-chan sent, path string) sent {
	t.Helper()
	select {
	case got := <-s:
		if got.err != nil {
			t.Fatal(got.err)
		}
		if err := document.CheckResponse(http.MethodPost, path, got.res, got.body); err != nil {
			t.Error(err)
		}
		return got
	case <-time.After(patience):
		t.Fatal("no response")
		return sent{}
	}
}

// runners returns the process ids of p's n claimed sandboxes, once there are
// so many and their programs have written what they do.
func runners(t *testing.T, p *product.Product, n int) []int {
	t.Helper()
	var pids []int
	product.Eventually(t, patience, fmt.Sprintf("%d programs run", n), func() bool {
		pids = pids[:0]
		for _, name := range claimed(t, p) {
			runc := filepath.Join(product.Root(t), "build", "bin", "runc")
			out, err := exec.Command(runc, "--root", filepath.Join(p.StateDir, "runc"), "state", name).Output()
			var state struct {
				Pid int `json:"pid"`
			}
			if err == nil && json.Unmarshal(out, &state) == nil && state.Pid > 1 && hasWritten(state.Pid) {
				pids = append(pids, state.Pid)
			}
		}
		return len(pids) == n
	})
	// What they have written is passed on within moments.
	time.Sleep(200 * time.Millisecond)
	return pids
}

// hasWritten reports whether the program of a runner has taken its name.
func hasWritten(runner int) bool {
	// Each thread has its own children.
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", runner))
	if err != nil {
		return false
	}
	for _, thread := range threads {
		children, err := os.ReadFile(thread)
		if err != nil {
			continue
		}
		for _, child := range strings.Fields(string(children)) {
			if name, err := os.ReadFile("/proc/" + child + "/comm"); err == nil && strings.TrimSpace(string(name)) == "partly" {
				return true
			}
		}
	}
	return false
}

func claimed(t *testing.T, p *product.Product) (names []string) {
	t.Helper()
	res, err := http.Get(p.URL + "/v1/pools")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var list struct{ Pools []execution.PoolStatus }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, pool := range list.Pools {
		for _, s := range pool.Sandboxes {
			if s.State == execution.SandboxClaimed {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// A sandbox that is killed from outside, or does not answer any more, is a
// platform error with what the program had written, as JSON and as a stream
// (CASES.md E14).
func TestBrokenSandboxes(t *testing.T) {
	for name, test := range map[string]struct {
		signal  syscall.Signal
		timeout float64
		status  int
		kind    execution.ProblemType
	}{
		"killed":  {syscall.SIGKILL, 60, http.StatusBadGateway, execution.ProblemSandboxLost},
		"stopped": {syscall.SIGSTOP, 5, http.StatusGatewayTimeout, execution.ProblemDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// All three are warm at the start: the programs run at once however
			// long it takes to make a sandbox.
			p := product.Start(t, "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_POOL_SIZE=3")
			product.Eventually(t, patience, "three sandboxes are warm", func() bool {
				var list struct{ Pools []execution.PoolStatus }
				p.Get(t, "/v1/pools", &list)
				return len(list.Pools) == 1 && list.Pools[0].Warm == 3
			})
			body := fmt.Sprintf(waiting, test.timeout)
			whole := send(p, pathExecute, body)
			stream := send(p, pathExecute, body, accept, execution.MediaSSE)
			event := send(p, "/", body, binaryEvent("1")...)
			pids := runners(t, p, 3)
			for _, pid := range pids {
				if err := syscall.Kill(pid, test.signal); err != nil {
					t.Error(err)
				}
			}
			for path, s := range map[string]<-chan sent{pathExecute: whole, "/": event} {
				got := checked(t, s, path)
				var problem execution.Problem
				if err := json.Unmarshal(got.body, &problem); err != nil || got.res.StatusCode != test.status || !problem.IsKind(test.kind) {
					t.Fatalf("%d: %s", got.res.StatusCode, got.body)
				}
				if problem.Partial == nil || problem.Partial.Stdout != "partly\n" || problem.Partial.SandboxName == "" {
					t.Errorf("%s: the output is not there: %s", path, got.body)
				}
			}
			checkBroken(t, checked(t, stream, pathExecute).body, test.kind)
		})
	}
}

// checkBroken checks the end of a stream that the platform could not complete.
func checkBroken(t *testing.T, body []byte, kind execution.ProblemType) {
	t.Helper()
	events, err := openapi.ParseEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	var exit execution.Exit
	if err := json.Unmarshal([]byte(last.Data), &exit); err != nil || last.Name != execution.EventExit {
		t.Fatalf("the last event is %s %s", last.Name, last.Data)
	}
	if exit.Status != execution.StatusPlatformError || exit.ExitCode != nil || exit.Problem == nil || !exit.Problem.IsKind(kind) {
		t.Errorf("exit %s", last.Data)
	}
	if !strings.Contains(string(body), "partly") {
		t.Errorf("the output is not there: %s", body)
	}
}

// A server that shuts down takes the blame for the programs that it ends.
func TestShutdown(t *testing.T) {
	t.Parallel()
	p := product.StartIn(t, product.StateDir(t), "PREHEAT_SHUTDOWN_GRACE=100ms", "PREHEAT_JAVASCRIPT_POOL_SIZE=0")
	body := fmt.Sprintf(waiting, 60.)
	whole := send(p, pathExecute, body)
	event := send(p, "/", body, binaryEvent("1")...)
	stream := send(p, pathExecute, body, accept, execution.MediaSSE)
	runners(t, p, 3)
	p.Stop(t)
	for path, s := range map[string]<-chan sent{pathExecute: whole, "/": event} {
		got := checked(t, s, path)
		var problem execution.Problem
		if err := json.Unmarshal(got.body, &problem); err != nil || got.res.StatusCode != http.StatusServiceUnavailable || !problem.IsKind(execution.ProblemNotReady) {
			t.Errorf("%d: %s", got.res.StatusCode, got.body)
		}
		if path == "/" && (problem.Partial == nil || problem.Partial.Stdout != "partly\n") {
			t.Errorf("the output is not there: %s", got.body)
		}
	}
	checkBroken(t, checked(t, stream, pathExecute).body, execution.ProblemNotReady)
}

// A request that does not arrive is answered, and its connection is closed.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", strings.TrimPrefix(shared.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST "+pathExecute+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: applic"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.CheckResponse(http.MethodPost, pathExecute, res, body); err != nil || res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d, %v", res.StatusCode, err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("the connection goes on with %q, %v", rest, err)
	}
}
