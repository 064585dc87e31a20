package main

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
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// product is the standalone program under measurement.
type product struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
	logged chan struct{}
}

var listening = regexp.MustCompile(`msg=listening url=(\S+)`)

func startProduct(ctx context.Context, stateDir string) (*product, error) {
	p := &product{
		cmd: exec.Command("build/bin/preheat"), logged: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	p.cmd.Env = append(os.Environ(), "PREHEAT_LISTEN=127.0.0.1:0", "PREHEAT_STATE_DIR="+stateDir,
		"PREHEAT_POOL_SIZE=8", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_MAX_SANDBOXES=160", "PREHEAT_MAX_SESSIONS=150", "PREHEAT_MAX_POOL_SESSIONS=150", "PREHEAT_LLM_DISCOVER=false", "PREHEAT_LOG_LEVEL=info")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the product (make build makes it): %w", err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(p.logged)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
	}()
	select {
	case p.url = <-url:
	case <-p.logged:
		return nil, errors.Join(errors.New("the product ended at once"), p.cmd.Wait())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), p.stop())
	}
	for {
		res, err := p.client.Get(p.url + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), p.stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// execute runs print(1) and checks the result.
func (p *product) execute(ctx context.Context) error {
	r, err := p.send(ctx, execution.Request{Language: "python", Code: "print(1)"})
	if err == nil && (r.Stdout != "1\n" || r.ExitCode != 0) {
		err = fmt.Errorf("the result is %+v", r)
	}
	return err
}

// attack runs a fork bomb, a memory hog and an output flood, each again and
// again, until the returned function is called.
func (p *product) attack(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, code := range []string{
		"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
		"x = []\nwhile True: x.append(bytearray(1 << 20))",
		"while True: print('x' * 1000)",
	} {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := p.send(ctx, execution.Request{Language: "python", Code: code, Limits: execution.Limits{TimeoutSeconds: 5}})
				if err != nil && ctx.Err() == nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		return failed
	}
}

func (p *product) send(ctx context.Context, r execution.Request) (*execution.Result, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/sandbox/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", execution.MediaJSON)
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var result execution.Result
	if err := json.Unmarshal(text, &result); err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	return &result, nil
}

func (p *product) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.logged
	return p.cmd.Wait()
}
