package clients_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/hostile"
	"github.com/preheat-dev/preheat/tests/product"
)

var pistonClients = []string{"piston-client", "piston-api", "piston-api-client"}

// pistonAnswer is what a client gives its caller.
type pistonAnswer struct {
	Run *struct {
		Stdout, Stderr, Output  string
		Code                    *int
		Signal, Message, Status *string
	}
	Language, Version string
	Message           string
}

// piston runs a program by a client of npm. Its limit is said as the client says
// it, in milliseconds.
func piston(t *testing.T, p *product.Product, client string, r execution.Request) (pistonAnswer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	in, err := json.Marshal(map[string]any{
		"language": r.Language, "code": r.Code, "stdin": r.Stdin, "args": append([]string{}, r.Args...),
		"timeout": 1000 * cmp.Or(r.Limits.TimeoutSeconds, 30),
	})
	if err != nil {
		return pistonAnswer{}, err
	}
	cmd := exec.CommandContext(ctx, "node", "piston/run.mjs", client)
	cmd.Env, cmd.Stdin = append(os.Environ(), "PREHEAT_URL="+p.URL), bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		return pistonAnswer{}, err
	}
	var a pistonAnswer
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("%w in %.300s", err, out)
	}
	return a, nil
}

func TestPistonClientsRunPrograms(t *testing.T) {
	p := product.Start(t, "PREHEAT_DOORS=piston")
	r := hostile.Python("import sys\nprint(sys.argv[1:], input(), flush=True)\nprint('err', file=sys.stderr, flush=True)\nprint('last')")
	r.Args, r.Stdin = []string{"x y"}, "in\n"
	for _, client := range pistonClients {
		t.Run(client, func(t *testing.T) {
			a, err := piston(t, p, client, r)
			if err != nil || a.Run == nil || a.Run.Code == nil || *a.Run.Code != 0 || a.Run.Signal != nil || a.Run.Status != nil || a.Run.Message != nil {
				t.Fatalf("%v: %+v", err, a)
			}
			if a.Run.Stdout != "['x y'] in\nlast\n" || a.Run.Stderr != "err\n" || a.Run.Output != "['x y'] in\nerr\nlast\n" || a.Language != "python" || !strings.HasPrefix(a.Version, "3.") {
				t.Errorf("%+v, %+v", a, a.Run)
			}
		})
	}
}

func TestPistonClientsShowHostilePrograms(t *testing.T) {
	p := product.Start(t, hostile.Environment("piston")...)
	for _, client := range pistonClients {
		t.Run(client, func(t *testing.T) {
			hostile.Test(t, p, hostile.Carries{}, func(t *testing.T, r execution.Request, output func()) hostile.Shown {
				var a pistonAnswer
				var err error
				var call sync.WaitGroup
				call.Go(func() { a, err = piston(t, p, client, r) })
				if output != nil {
					product.Eventually(t, patience, "the program runs", func() bool { return len(hostile.Claimed(t, p)) == 1 })
					output()
				}
				if call.Wait(); err != nil {
					t.Fatal(err)
				}
				if a.Run == nil {
					return hostile.Shown{Failed: true, Text: a.Message}
				}
				s := hostile.Shown{Failed: a.Run.Status != nil, Text: a.Run.Output}
				for _, text := range []*string{a.Run.Signal, a.Run.Status, a.Run.Message} {
					if text != nil {
						s.Text += "\n" + *text
					}
				}
				return s
			})
		})
	}
}
