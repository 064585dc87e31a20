package doors_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/hostile"
	"github.com/preheat-dev/preheat/tests/product"
)

// contextOf ends with the test, as all its waits do.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

// connect returns a session of the protocol's client in Go. saw takes the messages of
// progress.
func connect(t testing.TB, transport mcp.Transport, version string, saw func(string)) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if saw != nil {
				saw(r.Params.Message)
			}
		},
	})
	session, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func overHTTP(p *product.Product) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: p.URL + "/mcp", DisableStandaloneSSE: true}
}

func call(r execution.Request, token any) *mcp.CallToolParams {
	params := &mcp.CallToolParams{Name: "run_code", Arguments: r}
	if token != nil {
		params.SetProgressToken(token)
	}
	return params
}

// show is what a client shows of a call's result.
func show(t *testing.T, r *mcp.CallToolResult) hostile.Shown {
	t.Helper()
	s := hostile.Shown{Failed: r.IsError}
	var texts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			s.Images = append(s.Images, string(c.Data))
		case *mcp.EmbeddedResource:
			if c.Resource.MIMEType == "text/html" {
				s.HTML = append(s.HTML, c.Resource.Text)
			}
		default:
			t.Errorf("content of type %T", c)
		}
	}
	s.Text = strings.Join(texts, "\n")
	return s
}

var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

func TestMCPShowsHostilePrograms(t *testing.T) {
	hostile.Test(t, shared, hostile.Carries{Results: true, Progress: true}, func(t *testing.T, r execution.Request, output func()) hostile.Shown {
		session := connect(t, overHTTP(shared), "", func(message string) {
			if output != nil && strings.Contains(message, "before") {
				output()
			}
		})
		ctx, cancel := contextOf(t)
		defer cancel()
		var token any
		if output != nil {
			token = "1"
		}
		result, err := session.CallTool(ctx, call(r, token))
		if err != nil {
			t.Fatal(err)
		}
		return show(t, result)
	})
}

// Each revision is spoken as its clients ask for it, with all that a program
// takes and yields.
func TestMCPSpeaksRevisions(t *testing.T) {
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			session := connect(t, overHTTP(shared), version, nil)
			if got := session.InitializeResult(); got.ProtocolVersion != version {
				t.Fatalf("the revision is %s", got.ProtocolVersion)
			}
			r := hostile.Python("import os, sys\nprint(sys.argv[1:], os.environ['A'], sys.stdin.read(), open('d/in').read())\nn = open('out.bin', 'wb').write(b'\\x00\\xff')")
			r.Args, r.Env, r.Stdin = []string{"x y"}, map[string]string{"A": "b"}, "input"
			r.Files = []execution.File{{Path: "d/in", Content: "AAE=", Encoding: execution.EncodingBase64}}
			result, err := session.CallTool(t.Context(), call(r, nil))
			if err != nil {
				t.Fatal(err)
			}
			if want := "['x y'] b input \x00\x01\n"; result.IsError || show(t, result).Text != want {
				t.Errorf("%t: %q", result.IsError, show(t, result).Text)
			}
			last, ok := result.Content[len(result.Content)-1].(*mcp.EmbeddedResource)
			if !ok || string(last.Resource.Blob) != "\x00\xff" || !strings.HasSuffix(last.Resource.URI, "/out.bin") {
				t.Errorf("the file is %+v", last)
			}
			structured, err := json.Marshal(result.StructuredContent)
			if err != nil {
				t.Fatal(err)
			}
			var out execution.Result
			if err := json.Unmarshal(structured, &out); err != nil || out.Status != execution.StatusSucceeded || out.Artifacts[0].Size != 2 || out.SandboxName == "" {
				t.Errorf("%v: %s", err, structured)
			}
		})
	}
}

// A call that is cancelled ends its program at once, and no other caller's that has
// the same id.
func TestMCPCancels(t *testing.T) {
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			began := make(chan struct{}, 16)
			saw := func(message string) {
				if strings.Contains(message, "before") {
					began <- struct{}{}
				}
			}
			program := hostile.Within(hostile.Python("import time\nprint('before', flush=True)\ntime.sleep(300)"), 300)
			other, cancelOther := context.WithCancel(t.Context())
			defer cancelOther()
			ended := make(chan error, 2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, ctx := range []context.Context{other, ctx} {
				session := connect(t, overHTTP(shared), version, saw)
				go func() {
					_, err := session.CallTool(ctx, call(program, "same"))
					ended <- err
				}()
				<-began
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("a cancelled call has a result")
			}
			product.Eventually(t, patience, "one program ends", func() bool { return len(hostile.Claimed(t, shared)) == 1 })
			// The other's notification comes later than what would have ended it.
			cancelOther()
			<-ended
			product.Eventually(t, patience, "both programs ended", func() bool { return len(hostile.Claimed(t, shared)) == 0 })
		})
	}
}

// What a model got wrong is said to it, with the field's name.
func TestMCPNamesWhatIsWrong(t *testing.T) {
	session := connect(t, overHTTP(shared), "", nil)
	for name, test := range map[string]struct {
		arguments any
		want      string
	}{
		"no code":     {map[string]any{"language": "python"}, "code"},
		"empty":       {map[string]any{"language": "python", "code": " "}, "code: The program is empty."},
		"language":    {map[string]any{"language": "cobol", "code": "x"}, "language"},
		"limit":       {map[string]any{"language": "python", "code": "x", "limits": map[string]any{"timeout_seconds": 4000}}, "limits.timeout_seconds"},
		"path":        {map[string]any{"language": "python", "code": "x", "files": []any{map[string]any{"path": "../x", "content": ""}}}, "files[0].path"},
		"unknown":     {map[string]any{"language": "python", "code": "x", "timeout": 3}, "timeout"},
		"stdin twice": {map[string]any{"language": "python", "code": "x", "stdin": "a", "stdin_base64": "YQ=="}, "stdin_base64"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: test.arguments})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, result); !got.Failed || !strings.Contains(got.Text, test.want) {
				t.Errorf("%t: %s", got.Failed, got.Text)
			}
		})
	}
}
