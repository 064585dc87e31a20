// Package mcp is the door for clients of the Model Context Protocol: a server
// with one tool that runs a program in a fresh sandbox. It speaks streamable
// HTTP at /mcp, and the protocol's stdio transport.
//
// Nothing is kept between calls, so that any replica answers any of them. What
// HTTP clients of revisions before 2026-07-28 get as their session's id only
// names them when they cancel a call, see calls.
package mcp

import (
	"context"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/functions/doors/capture"
)

// instructions tell a model what the server is for.
const instructions = "Runs programs in fresh, isolated sandboxes without network. Nothing is kept between calls: " +
	"give each program all the code and files that it needs, and print what you want to see."

// newServer returns a server that runs programs by runner.
func newServer(runner capture.Runner, log *slog.Logger) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "preheat", Title: "Preheat", Version: version()}, &mcp.ServerOptions{
		Instructions: instructions, Logger: warnings(log),
		// The tools are always the same.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	mcp.AddTool(s, runCode(), (&tool{runner: runner}).run)
	return s
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// ServeStdio speaks the protocol on two streams until in ends, or ctx does.
func ServeStdio(ctx context.Context, runner capture.Runner, in io.Reader, out io.Writer, log *slog.Logger) error {
	return newServer(runner, log).Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
}

// unclosed is a stream of the process.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// warnings is the protocol's library's logger: it logs each request's beginning
// and end, as the HTTP server does already.
func warnings(log *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{log.Handler()}) }

type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h atLeastWarn) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(a)}
}

func (h atLeastWarn) WithGroup(name string) slog.Handler {
	return atLeastWarn{h.Handler.WithGroup(name)}
}
