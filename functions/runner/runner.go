// Package runner is the process inside every sandbox: PID 1, static, started
// once and good for one run, or for one session.
//
// It starts the interpreters that its sandbox keeps warm and says ready. On
// the one run that it accepts it writes the program's files, hands the program
// to a waiting interpreter or starts one, passes on what the program writes
// within the limits, and watches the clock from outside the program's reach.
// When the program ends, or its time, output or caller does, the runner kills
// every process, collects rich results and artifacts, and reports one outcome.
//
// A session is several runs of one caller in one interpreter, with files that can
// be read and written in between. Each operation on it has a connection of its own.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/artifact"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/language"
)

// Config is how a sandbox is set up.
type Config struct {
	// Warm names the languages whose interpreters are started ahead.
	Warm []string
	// Imports are the modules that a warm Python has imported.
	Imports []string
	// TokenHash is the SHA-256 of the token that a connection must show before
	// it may bring the run; without it any connection may.
	TokenHash []byte
	// Env is the environment of every program.
	Env map[string]string
	// WorkDir is the programs' working directory, empty at the start.
	WorkDir string
	// CgroupRoot is where the sandbox's cgroup can be read.
	CgroupRoot string
}

// Runner holds a sandbox's processes.
type Runner struct {
	config    Config
	language  func(name string) (language.Language, bool)
	procs     *processes
	pipes     *arrivals
	warm      map[string]*interpreter
	program   *interpreter // once there is a run
	admission admission
	session   atomic.Pointer[session] // once one is open
	reserve   memoryReserve
	memory    *memoryEvents
	// oomBefore is how many processes were killed for memory before the run.
	oomBefore int64
}

// New starts the warm interpreters and closes this process off from programs.
// It must run as PID 1 of the sandbox's process namespace, since it kills
// everything else in there.
func New(config Config) (*Runner, error) {
	if os.Getpid() != 1 {
		return nil, errors.New("the runner must be PID 1 of a sandbox")
	}
	if err := installSeccomp(); err != nil {
		// Without the filter a program can kill or starve the runner and so hide
		// how it ended; nothing outside the sandbox is at risk.
		slog.Warn("Programs can end the runner of this sandbox", "error", err)
	}
	reserve, err := newMemoryReserve()
	if err != nil {
		return nil, err
	}
	pipes, err := newArrivals()
	if err != nil {
		return nil, err
	}
	r := &Runner{
		config: config, language: language.Find, admission: admission{tokenHash: config.TokenHash}, procs: newProcesses(), pipes: pipes,
		warm: map[string]*interpreter{}, reserve: reserve, memory: openMemoryEvents(config.CgroupRoot),
	}
	for _, name := range config.Warm {
		lang, ok := language.Find(name)
		if !ok {
			return nil, fmt.Errorf("unknown language %q", name)
		}
		if len(lang.Warm) == 0 {
			continue
		}
		if r.warm[name], err = r.startWarm(lang); err != nil {
			return nil, err
		}
	}
	if err := r.warmUp(); err != nil {
		return nil, err
	}
	return r, r.procs.Protect()
}

// startWarm starts an interpreter that waits for what it is to run.
func (r *Runner) startWarm(lang language.Language) (*interpreter, error) {
	env := maps.Clone(r.config.Env)
	if lang.Rich && len(r.config.Imports) > 0 {
		env["_PREHEAT_IMPORT"] = strings.Join(r.config.Imports, ",")
	}
	return startWarm(r.procs, r.pipes, lang, environ(env), r.config.WorkDir)
}

// warmUp does once what a run does after the program's end: the caller waits for
// that, and the first time takes longest.
func (r *Runner) warmUp() error {
	if err := wire.WarmUp(); err != nil {
		return fmt.Errorf("warming the protocol up: %w", err)
	}
	r.oomBefore = r.memory.oomKills()
	known, err := artifact.Take(r.config.WorkDir)
	if err != nil {
		return fmt.Errorf("looking at the working directory: %w", err)
	}
	artifact.Collect(r.config.WorkDir, known, artifact.Limits{}, func(execution.Artifact, io.Reader) error { return nil })
	return nil
}

// Close kills every process.
func (r *Runner) Close() {
	r.procs.Close()
	r.memory.close()
	for _, in := range r.warm {
		in.close()
	}
	if r.program != nil {
		r.program.close()
	}
	r.pipes.close()
}

// Idle reports whether the runner still waits for its run.
func (r *Runner) Idle() bool { return r.admission.idle() }

// ErrNoRun says that a connection ended before it brought a run that was accepted.
var ErrNoRun = errors.New("no run")

// Serve carries out the run or the session that comes over conn, whose other end
// made the sandbox, and returns when it is over and reported. The error wraps
// ErrNoRun while the sandbox is still good.
func (r *Runner) Serve(conn net.Conn) error {
	err := r.serve(conn, timeouts{})
	if s := r.session.Load(); s != nil {
		return s.serveOver(conn)
	}
	return err
}

// serve carries out what conn brings: the sandbox's one run, or an operation on
// its session.
func (r *Runner) serve(conn net.Conn, limits timeouts) error {
	if s := r.session.Load(); s != nil {
		return errors.Join(ErrNoRun, s.serve(conn, limits))
	}
	server := wire.NewServer(conn)
	op, run, err := r.admission.admit(conn, server, limits)
	if err != nil {
		return err
	}
	if op != nil {
		return r.keep(conn, server, *op, run)
	}
	return r.carryOut(server, run, time.Now())
}

// carryOut carries out the sandbox's one run and reports its end.
func (r *Runner) carryOut(server *wire.Server, run wire.Run, received time.Time) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		// Ends at the latest when the caller closes conn after Serve.
		defer cancel()
		server.AwaitEnd()
	}()
	outcome, err := r.execute(ctx, server, run, received)
	err = report(server, outcome, err)
	// The caller answers first: the end of a sandbox keeps a processor busy
	// for a while.
	select {
	case <-ctx.Done():
	case <-time.After(linger):
	}
	return err
}

// linger bounds how long a sandbox that has reported waits for its caller to
// hang up.
const linger = 2 * time.Second

// report says how the run ended, or that it failed.
func report(server *wire.Server, outcome wire.Outcome, failed error) error {
	if failed == nil {
		return server.Exit(outcome)
	}
	slog.Error("The run failed", "error", failed)
	return server.Fail(failureOf(failed))
}

// failureOf is what the other end learns of an error.
func failureOf(err error) *wire.Failure {
	failure := &wire.Failure{Code: wire.FailureInternal, Detail: err.Error()}
	var invalid *invalidError
	if errors.As(err, &invalid) {
		failure.Code, failure.Field = wire.FailureInvalid, invalid.field
	}
	return failure
}

// invalidError is what cannot be carried out because of what is in it.
type invalidError struct {
	err error
	// field is the request's field that is wrong, where err does not name it.
	field string
}

func (e *invalidError) Error() string { return e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }

func (r *Runner) execute(ctx context.Context, s *wire.Server, run wire.Run, received time.Time) (wire.Outcome, error) {
	lang, ok := r.language(run.Language)
	if !ok {
		return wire.Outcome{}, &invalidError{err: fmt.Errorf("unknown language %q", run.Language)}
	}
	known, err := r.prepare(lang, run)
	if err != nil {
		return wire.Outcome{}, err
	}
	habitual := habits(lang, run.Code)
	dropInput(&run)
	in, err := r.begin(lang, run)
	if err != nil {
		return wire.Outcome{}, err
	}
	r.program = in // closed after the report
	started := time.Now()
	if err := s.Started(); err != nil {
		r.procs.KillAll()
		return wire.Outcome{}, fmt.Errorf("reporting the start: %w", err)
	}

	streams := watch(s, in, run)
	why, end := await(ctx, in.end, streams.exceeded, run.Limits.Timeout-time.Since(started))
	ended := time.Now()
	r.procs.KillAll()
	r.reserve.free()
	if why != causeExit {
		end = <-in.end
	}
	truncated, notes := streams.finish(in)

	outcome := conclude(why, end.status, r.memory.oomKills()-r.oomBefore)
	outcome.Truncated = truncated
	outcome.Start, outcome.Run = started.Sub(received), ended.Sub(started)
	cpu, rss := r.procs.Usage()
	outcome.Usage.CPUMS = execution.Milliseconds(max(0, cpu-in.before))
	outcome.Usage.WallMS = execution.Milliseconds(outcome.Run)
	outcome.Usage.MaxRSSBytes = rss
	outcome.Notes = append(append(outcome.Notes, habitual...), notes...)
	outcome.Notes = append(outcome.Notes, r.sendArtifacts(s, known, run.Limits)...)
	if note := artifact.Elsewhere(os.TempDir(), r.config.Env["HOME"]); note != "" {
		outcome.Notes = append(outcome.Notes, note)
	}
	return outcome, nil
}

// prepare writes the program and its files, and takes the inventory of what
// is no artifact.
func (r *Runner) prepare(lang language.Language, run wire.Run) (artifact.Inventory, error) {
	root, err := os.OpenRoot(r.config.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("opening the working directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := writeFiles(root, run.Files, os.O_EXCL); err != nil {
		return nil, err
	}
	if err := write(root, lang.Script, run.Code, os.O_EXCL); err != nil {
		return nil, &invalidError{err: fmt.Errorf("code: %w", err)}
	}
	return artifact.Take(r.config.WorkDir)
}

// dropInput gives back the memory of what has been written to files: it is taken
// from the program's.
func dropInput(run *wire.Run) {
	const worthwhile = 1 << 20 // bytes
	size := len(run.Code) + len(run.Stdin)
	for _, f := range run.Files {
		size += len(f.Content)
	}
	run.Code, run.Files = nil, nil
	if size > worthwhile {
		debug.FreeOSMemory()
	}
}

// killIdleInterpreters kills the waiting interpreters except keep, so that the
// program is alone.
func (r *Runner) killIdleInterpreters(keep *interpreter) {
	for name, in := range r.warm {
		if in != keep {
			_ = unix.Kill(in.pid, unix.SIGKILL)
			<-in.end
			in.close()
			delete(r.warm, name)
		}
	}
	r.procs.ResetUsage()
}

// begin makes the program run: in the interpreter that waits for it, or in a
// new one.
func (r *Runner) begin(lang language.Language, run wire.Run) (*interpreter, error) {
	env := maps.Clone(r.config.Env)
	maps.Copy(env, run.Env)
	if in := r.warm[lang.Name]; in != nil && lang.TakesWarm(run.Env) {
		r.killIdleInterpreters(in)
		delete(r.warm, lang.Name)
		if err := in.handOver(run.Args, env); err != nil {
			in.close()
			return nil, err
		}
		return in, nil
	}
	r.killIdleInterpreters(nil)
	r.pipes.forget()
	in, err := startCold(r.procs, r.pipes, lang, run.Args, environ(env), r.config.WorkDir)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) || strings.Contains(err.Error(), "argument list too long") {
			err = &invalidError{err: err}
		}
		return nil, err
	}
	return in, nil
}

// await waits for the first reason to end the program.
func await(ctx context.Context, end <-chan exit, exceeded <-chan struct{}, timeout time.Duration) (cause, exit) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case e := <-end:
		return causeExit, e
	case <-timer.C:
		return causeTimeout, exit{}
	case <-exceeded:
		return causeOutput, exit{}
	case <-ctx.Done():
		return causeCancel, exit{}
	}
}

func (r *Runner) sendArtifacts(s *wire.Server, known artifact.Inventory, limits wire.Limits) []string {
	return artifact.Collect(r.config.WorkDir, known, artifact.Limits{Count: limits.Artifacts, Bytes: limits.ArtifactBytes},
		func(a execution.Artifact, content io.Reader) error {
			err := s.Artifact(a, content)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil // the artifact itself says so
			}
			return err // the exit will fail for the same reason
		})
}

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env)+2)
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}
