// Command runner is PID 1 of a sandbox; see package runner.
//
// Its settings come from the environment:
//
//	PREHEAT_RUNNER_WARM          languages to start ahead, separated by commas
//	PREHEAT_RUNNER_IMPORTS       modules that a warm Python imports
//	PREHEAT_RUNNER_TOKEN_SHA256  hash of the token that a connection must show, in hexadecimal
//	PREHEAT_RUNNER_TOKEN         that token itself, instead of its hash
//	PREHEAT_RUNNER_FD            descriptor of a connected socket to serve
//	PREHEAT_RUNNER_LISTEN        TCP address to serve, if there is no such socket
//	PREHEAT_RUNNER_PROBE         TCP address where HTTP probes are answered, if any
//
// None of them reaches a program.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner"
	"github.com/preheat-dev/preheat/functions/runner/capacity"
)

const (
	settings   = "PREHEAT_RUNNER_"
	workDir    = "/work"
	cgroupRoot = "/sys/fs/cgroup"
	// skeleton is copied to HOME: caches that would take time to make.
	skeleton = "/usr/share/preheat/home"
)

func main() {
	if err := run(); err != nil {
		slog.Error("The runner failed", "error", err)
		os.Exit(1)
	}
}

func run() error {
	// One after the other its goroutines need no other thread woken, and leave
	// the other processors to the program.
	runtime.GOMAXPROCS(1)
	set, env := environment()
	hash, err := tokenHash(set)
	if err != nil {
		return err
	}
	capacity.Environment(env, cgroupRoot)
	warm := make(chan struct{})
	if address := set["PROBE"]; address != "" {
		if err := answerProbes(address, warm); err != nil {
			return err
		}
	}
	if home := env["HOME"]; home != "" {
		if err := os.CopyFS(home, os.DirFS(skeleton)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("preparing the home directory: %w", err)
		}
	}
	r, err := runner.New(runner.Config{
		Warm: list(set["WARM"]), Imports: list(set["IMPORTS"]), TokenHash: hash,
		Env: env, WorkDir: workDir, CgroupRoot: cgroupRoot,
	})
	if err != nil {
		return err
	}
	defer r.Close()
	endOnTerm(r)
	if fd := set["FD"]; fd != "" {
		conn, err := inherited(fd)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := r.Serve(conn); err != nil && !errors.Is(err, runner.ErrNoRun) {
			return err
		}
		return nil
	}
	err = listen(r, set["LISTEN"], warm)
	return errors.Join(err, reportEnd(r.SessionEnd()))
}

// terminationLog is where the kubelet looks for why a container has ended.
const terminationLog = "/dev/termination-log"

// reportEnd writes why a session is over, if there was one, to where the kubelet
// takes it into the Pod's status.
func reportEnd(why execution.SessionEnd) error {
	if why == "" {
		return nil
	}
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("saying why the session is over: %w", err)
	}
	_, err = f.WriteString(string(why))
	return errors.Join(err, f.Close())
}

// environment splits the environment into the runner's settings, without
// their prefix, and what programs get: without the API server's address, which
// the kubelet gives to every container.
func environment() (set, env map[string]string) {
	set, env = map[string]string{}, map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if s, ok := strings.CutPrefix(name, settings); ok {
			set[s] = value
		} else if !strings.HasPrefix(name, "KUBERNETES_") {
			env[name] = value
		}
	}
	return set, env
}

// tokenHash returns the hash of the token that connections must show, or nothing
// if none is needed. A hash that is not one must not open the sandbox.
func tokenHash(set map[string]string) ([]byte, error) {
	if token := set["TOKEN"]; token != "" && set["TOKEN_SHA256"] == "" {
		sum := sha256.Sum256([]byte(token))
		return sum[:], nil
	}
	hash, err := hex.DecodeString(set["TOKEN_SHA256"])
	if err != nil || len(hash) != 0 && len(hash) != sha256.Size {
		return nil, fmt.Errorf("%sTOKEN_SHA256 is not a SHA-256 in hexadecimal", settings)
	}
	return hash, nil
}

// endOnTerm lets SIGTERM end a sandbox that runs nothing, and a session: a program
// must not end its own report.
func endOnTerm(r *runner.Runner) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() { // for the process's life
		for range term {
			if r.Idle() {
				os.Exit(0)
			}
			r.Shutdown()
		}
	}()
}

func inherited(fd string) (net.Conn, error) {
	n, err := strconv.Atoi(fd)
	if err != nil {
		return nil, fmt.Errorf("%sFD: %w", settings, err)
	}
	unix.CloseOnExec(n)
	f := os.NewFile(uintptr(n), "connection")
	defer func() { _ = f.Close() }()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("%sFD: %w", settings, err)
	}
	return conn, nil
}

// listen serves connections until one has brought a run and that is over. It
// closes ready when they can come.
func listen(r *runner.Runner, address string, ready chan<- struct{}) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	close(ready)
	return r.ServeListener(l)
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}
