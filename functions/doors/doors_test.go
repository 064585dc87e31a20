package doors_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/functions/doors"
	"github.com/preheat-dev/preheat/internal/server"
)

func TestSettingsNameTheVariable(t *testing.T) {
	for _, list := range [][]string{{"piano"}, {"mcp", "none"}, {"MCP"}} {
		err := register(t, list...)
		if err == nil || !strings.Contains(err.Error(), "PREHEAT_DOORS") || !strings.Contains(err.Error(), "mcp") {
			t.Errorf("%v: %v", list, err)
		}
	}
	for _, list := range [][]string{{"none"}, {"mcp"}, {"mcp", "mcp"}, nil} {
		if err := register(t, list...); err != nil {
			t.Errorf("%v: %v", list, err)
		}
	}
}

func register(t *testing.T, list ...string) error {
	t.Helper()
	return doors.Settings{Doors: list}.Register(newServer(t).App(), nobody(t), slog.New(slog.DiscardHandler))
}

// nobody is a client of a server that is not there.
func nobody(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New("http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A door that is off listens to nothing, and each that is on to its path.
func TestDoorsAreOnOrOff(t *testing.T) {
	for name, want := range map[string]int{"none": http.StatusNotFound, "piston": http.StatusNotFound, "mcp": http.StatusMethodNotAllowed} {
		s := newServer(t)
		if err := (doors.Settings{Doors: []string{name}}).Register(s.App(), nobody(t), slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		res, err := http.Get("http://" + listener.Addr().String() + "/mcp")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: status %d instead of %d", name, res.StatusCode, want)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// Without a door's folder, its line and its import everything else builds.
func TestEachDoorCanBeRemoved(t *testing.T) {
	for name := range doors.All() {
		t.Run(name, func(t *testing.T) {
			own, err := filepath.Glob(filepath.Join(name, "*"))
			if err != nil || len(own) == 0 {
				t.Fatalf("%v: %v", own, err)
			}
			replace := map[string]string{}
			for _, file := range own {
				replace[absolute(t, file)] = ""
			}
			text, err := os.ReadFile("doors.go")
			if err != nil {
				t.Fatal(err)
			}
			var rest strings.Builder
			removed := 0
			for line := range strings.Lines(string(text)) {
				if strings.HasSuffix(line, "/functions/doors/"+name+"\"\n") || strings.HasPrefix(line, "\t\t\""+name+"\": ") {
					removed++
					continue
				}
				rest.WriteString(line)
			}
			if removed != 2 {
				t.Fatalf("doors.go has %d lines of the door", removed)
			}
			without := filepath.Join(t.TempDir(), "doors.go")
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			replace[absolute(t, "doors.go")] = without
			write(t, without, []byte(rest.String()))
			encoded, err := json.Marshal(map[string]any{"Replace": replace})
			if err != nil {
				t.Fatal(err)
			}
			write(t, overlay, encoded)
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "../...", "../../client/...")
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
