// Package product starts the built standalone program for tests, on a port and
// with a state folder of its own, and talks to it as a client would.
package product

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Product is one running program.
type Product struct {
	// URL is its base URL, StateDir its state folder.
	URL, StateDir string
	// Cmd is the process.
	Cmd *exec.Cmd

	mu     sync.Mutex
	log    bytes.Buffer
	logged chan struct{} // closed at the log's end
	url    chan string
}

// Root is the checkout's folder.
func Root(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the tests run outside the checkout")
}

// Start starts the program with more environment variables, as NAME=value, and
// waits until it is ready. The test's end stops it and checks that it ended
// well.
func Start(t testing.TB, env ...string) *Product {
	t.Helper()
	p := StartIn(t, StateDir(t), env...)
	t.Cleanup(func() { p.Stop(t) })
	return p
}

// StateDir makes a folder for a program's state. Sandboxes pass through it and
// the one above it to their root file systems.
func StateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Launch is StartIn that returns the error with which the program ended.
func Launch(t testing.TB, stateDir string, env ...string) (*Product, error) {
	t.Helper()
	return launch(Root(t), stateDir, env)
}

// StartIn is Start with a state folder, and without an end.
func StartIn(t testing.TB, stateDir string, env ...string) *Product {
	t.Helper()
	p, err := launch(Root(t), stateDir, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Main runs a package's tests, for its TestMain, with one program that they
// share: it is in *shared while they run. It returns the exit code.
func Main(m *testing.M, shared **Product, env ...string) int {
	root, err := findRoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stateDir, err := os.MkdirTemp("", "preheat-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(stateDir) }()
	// Sandboxes pass through it to their root file systems.
	if err := os.Chmod(stateDir, 0o711); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p, err := launch(root, stateDir, env)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*shared = p
	code := m.Run()
	if err := p.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "log of the program:\n%s", tail(p.Log()))
	}
	return code
}

// launch starts the program and waits until it is ready.
func launch(root, stateDir string, env []string) (*Product, error) {
	p := &Product{StateDir: stateDir, logged: make(chan struct{}), url: make(chan string, 1)}
	p.Cmd = exec.Command(binary(root))
	p.Cmd.Env = append(os.Environ(), "PREHEAT_LISTEN=127.0.0.1:0", "PREHEAT_STATE_DIR="+p.StateDir, "PREHEAT_LLM_DISCOVER=false")
	p.Cmd.Env = append(p.Cmd.Env, env...)
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.Cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the program (make build makes it): %w", err)
	}
	go p.follow(out)
	select {
	case p.URL = <-p.url:
	case <-p.logged:
		_ = p.Cmd.Wait()
		return nil, fmt.Errorf("the program ended at once:\n%s", p.Log())
	case <-time.After(time.Minute):
		return nil, errors.Join(fmt.Errorf("the program does not start:\n%s", p.Log()), p.stop())
	}
	for end := time.Now().Add(time.Minute); !p.ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("the program does not become ready:\n%s", p.Log()), p.stop())
		}
	}
	return p, nil
}

// binary is the program under test: PREHEAT_BINARY, or what make build made.
func binary(root string) string {
	if path := os.Getenv("PREHEAT_BINARY"); path != "" {
		return path
	}
	return filepath.Join(root, "build", "bin", "preheat")
}

var listening = regexp.MustCompile(`msg=listening url=(\S+)`)

func (p *Product) follow(out io.Reader) {
	defer close(p.logged)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			p.url <- m[1]
		}
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
	}
}

// Log is what the program has logged so far.
func (p *Product) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *Product) ready() bool {
	res, err := http.Get(p.URL + "/readyz")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Stop ends the program as a service manager would.
func (p *Product) Stop(t testing.TB) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("log of the program:\n%s", tail(p.Log()))
	}
}

func (p *Product) stop() error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the program: %w", err)
	}
	<-p.logged
	if err := p.Cmd.Wait(); err != nil {
		return fmt.Errorf("the program ended with %w:\n%s", err, tail(p.Log()))
	}
	return nil
}

// Kill ends the program with SIGKILL.
func (p *Product) Kill(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil {
		t.Fatalf("killing the program: %v", err)
	}
	<-p.logged
	_ = p.Cmd.Wait()
}

func tail(s string) string {
	const most = 8 << 10
	return s[max(0, len(s)-most):]
}

// Eventually waits until what is so.
func Eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// Post sends v as JSON (a []byte or string as it is) and returns the response
// with its body read.
func (p *Product) Post(t testing.TB, path string, v any, header ...string) (*http.Response, []byte) {
	t.Helper()
	res, body, err := p.Do(context.Background(), path, v, header...)
	if err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
	return res, body
}

// Do is Post with a context and an error. header holds names and values in
// turn.
func (p *Product) Do(ctx context.Context, path string, v any, header ...string) (*http.Response, []byte, error) {
	var body []byte
	switch v := v.(type) {
	case []byte:
		body = v
	case string:
		body = []byte(v)
	default:
		var err error
		if body, err = json.Marshal(v); err != nil {
			return nil, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", execution.MediaJSON)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	return res, got, err
}

// Get decodes the JSON that a path answers with.
func (p *Product) Get(t testing.TB, path string, into any) {
	t.Helper()
	res, err := http.Get(p.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d", path, res.StatusCode)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// Execute runs a request and returns its result. Anything but a result fails
// the test.
func (p *Product) Execute(t testing.TB, r execution.Request) execution.Result {
	t.Helper()
	res, body := p.Post(t, "/v1/sandbox/execute", r)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", res.StatusCode, body)
	}
	var result execution.Result
	if err := json.Unmarshal(body, &result); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return result
}

// Python runs a Python program.
func (p *Product) Python(t testing.TB, code string) execution.Result {
	t.Helper()
	return p.Execute(t, execution.Request{Language: "python", Code: code})
}

// Problem sends a request and returns the problem that answers it, whose
// status must be as given.
func (p *Product) Problem(t testing.TB, status int, v any, header ...string) execution.Problem {
	t.Helper()
	res, body := p.Post(t, "/v1/sandbox/execute", v, header...)
	if res.StatusCode != status {
		t.Fatalf("status %d instead of %d: %.500s", res.StatusCode, status, body)
	}
	if got := res.Header.Get("Content-Type"); got != execution.MediaProblem {
		t.Errorf("content type %q of %.200s", got, body)
	}
	var problem execution.Problem
	if err := json.Unmarshal(body, &problem); err != nil {
		t.Fatalf("%v in %.500s", err, body)
	}
	if problem.Status != status {
		t.Errorf("the problem says %d in a response of status %d", problem.Status, status)
	}
	return problem
}

// Event is one server-sent event.
type Event struct {
	Name string
	Data json.RawMessage
	At   time.Time
}

// Stream runs a request as a stream and returns its events.
func (p *Product) Stream(t testing.TB, r execution.Request) []Event {
	t.Helper()
	events, err := p.StreamTo(context.Background(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// StreamTo is Stream with a context and a function that sees each event as it
// comes.
func (p *Product) StreamTo(ctx context.Context, r execution.Request, see func(Event)) ([]Event, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", execution.MediaJSON)
	req.Header.Set("Accept", execution.MediaSSE)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	var events []Event
	lines := bufio.NewReaderSize(res.Body, 1<<20)
	var e Event
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "event: "):
			e.Name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			e.Data = json.RawMessage(line[len("data: "):])
		case line == "":
			e.At = time.Now()
			events = append(events, e)
			if see != nil {
				see(e)
			}
			e = Event{}
		}
	}
}
