package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// open opens a session, and end ends it.
func (p *product) open(ctx context.Context) (id string, err error) {
	var s execution.Session
	err = p.call(ctx, http.MethodPost, "/v1/sessions", execution.SessionRequest{Language: "python"}, &s)
	return s.ID, err
}

func (p *product) end(ctx context.Context, id string) error {
	return p.call(ctx, http.MethodDelete, "/v1/sessions/"+id, nil, nil)
}

// openings opens n sessions, one after the other, and returns how long each took.
func (p *product) openings(ctx context.Context, n int, pause time.Duration) ([]time.Duration, error) {
	var all []time.Duration
	for range n {
		time.Sleep(pause)
		began := time.Now()
		id, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
		if err := p.end(ctx, id); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// executeIn runs print(1) in a session and checks the result.
func (p *product) executeIn(ctx context.Context, id string) error {
	var r execution.SessionResult
	err := p.call(ctx, http.MethodPost, "/v1/sessions/"+id+"/execute", execution.Request{Code: "print(1)"}, &r)
	if err == nil && (r.Stdout != "1\n" || r.ExitCode != 0) {
		err = fmt.Errorf("the result is %+v", r)
	}
	return err
}

// call sends a request and reads the answer into result.
func (p *product) call(ctx context.Context, method, path string, body, result any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", execution.MediaJSON)
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		return errors.Join(err, fmt.Errorf("%s %s: status %d: %s", method, path, res.StatusCode, text))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// idle is what sessions cost that nobody uses.
type idle struct {
	sessions int
	// memory is what each takes, in bytes: the proportional part of what its
	// processes share. cpu is what all take, in parts of one processor.
	memory int64
	cpu    float64
}

// measureIdle opens n sessions, each with one run, and watches them for a while.
func measureIdle(ctx context.Context, p *product, n int, over time.Duration) (i idle, err error) {
	before, err := footprint(p.cmd.Process.Pid)
	if err != nil {
		return i, err
	}
	for range n {
		id, err := p.open(ctx)
		if err != nil {
			return i, err
		}
		defer func() { err = errors.Join(err, p.end(context.WithoutCancel(ctx), id)) }()
		if err := p.executeIn(ctx, id); err != nil {
			return i, err
		}
	}
	time.Sleep(2 * time.Second) // the pool is refilled
	first, err := footprint(p.cmd.Process.Pid)
	if err != nil {
		return i, err
	}
	time.Sleep(over)
	last, err := footprint(p.cmd.Process.Pid)
	if err != nil {
		return i, err
	}
	return idle{sessions: n, memory: (last.memory - before.memory) / int64(n), cpu: float64(last.cpu-first.cpu) / float64(over)}, nil
}

// usage is what a process and its descendants use.
type usage struct {
	memory int64 // bytes
	cpu    time.Duration
}

// footprint sums up a process and its descendants, from /proc/PID/smaps_rollup and
// /proc/PID/stat (proc(5)).
func footprint(root int) (sum usage, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return sum, err
	}
	parents, times := map[int]int{}, map[int]time.Duration{}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		parents[pid], _ = strconv.Atoi(fields[1])
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		times[pid] = time.Duration(user+system) * 10 * time.Millisecond
	}
	for pid := range parents {
		at := pid
		for at != root && at > 1 {
			at = parents[at]
		}
		if at == root {
			sum.cpu += times[pid]
			sum.memory += proportional(pid)
		}
	}
	return sum, nil
}

// proportional is a process's memory, with its part of what others share, in bytes.
func proportional(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nPss:")
	kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kib << 10
}
