package contract

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/tests/product"
)

func clientOf(t *testing.T, p *product.Product) *client.Client {
	t.Helper()
	c, err := client.New(p.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientExecutes(t *testing.T) {
	c := clientOf(t, shared)
	r, err := c.Execute(t.Context(), execution.Request{Language: "bash", Code: "echo out; echo err >&2; exit 3"}, "")
	if err != nil || r.Stdout != "out\n" || r.Stderr != "err\n" || r.ExitCode != 3 || r.Status != execution.StatusFailed {
		t.Errorf("%+v, %v", r, err)
	}
	program := execution.Request{Language: "python", Code: "import uuid; print(uuid.uuid4())"}
	first, err := c.Execute(t.Context(), program, "client")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Execute(t.Context(), program, "client"); err != nil || again.Stdout != first.Stdout {
		t.Errorf("%+v, %v", again, err)
	}
	var p *execution.Problem
	if _, err := c.Execute(t.Context(), execution.Request{Language: "cobol", Code: "1"}, ""); !errors.As(err, &p) || p.Field != "language" {
		t.Error(err)
	}
	pools, err := c.Pools(t.Context())
	if err != nil || len(pools) == 0 || pools[0].Name == "" {
		t.Errorf("%+v, %v", pools, err)
	}
	languages, err := c.Languages(t.Context())
	if err != nil || len(languages) == 0 {
		t.Errorf("%+v, %v", languages, err)
	}
}

func TestClientStreams(t *testing.T) {
	c := clientOf(t, shared)
	var got strings.Builder
	exit, err := c.Stream(t.Context(), execution.Request{Language: "bash", Code: `printf 'a\xff\n'; echo e >&2; echo x > file; exit 4`}, client.Handler{
		Start:  func(s execution.Start) error { got.WriteString(s.Language + "\n"); return nil },
		Output: func(_ execution.Stream, data []byte, _ int64) error { got.Write(data); return nil },
		Artifact: func(a execution.Artifact) error {
			got.WriteString(a.Path + ": " + a.Content)
			return nil
		},
	})
	if err != nil || exit.ExitCode == nil || *exit.ExitCode != 4 || got.String() != "bash\na\xff\ne\nfile: x\n" {
		t.Errorf("%+v, %v, %q", exit, err, got.String())
	}
}

// A call ends with its context, and its program with it.
func TestClientCancels(t *testing.T) {
	p := product.Start(t)
	c := clientOf(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := c.Stream(ctx, execution.Request{Language: "bash", Code: "echo started; sleep 1000"}, client.Handler{
		Output: func(execution.Stream, []byte, int64) error { cancel(); return nil },
	})
	if !errors.Is(err, client.ErrCut) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	product.Eventually(t, patience, "no sandbox is claimed", func() bool {
		pools, err := c.Pools(t.Context())
		claimed := 0
		for _, pool := range pools {
			claimed += pool.Claimed
		}
		return err == nil && claimed == 0
	})
}
