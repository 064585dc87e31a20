// Package doors lets clients of other protocols run programs. Each protocol has
// a package below it, a thin translator in front of what executes programs for
// everybody, none of which knows of another. A door that is not configured
// listens to nothing.
//
// A door is removed by its folder and its line in All, with its import.
package doors

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
	"github.com/preheat-dev/preheat/functions/doors/mcp"
	"github.com/preheat-dev/preheat/functions/doors/piston"
)

// Settings is the doors' part of the environment.
type Settings struct {
	// Doors are the protocols that are spoken, or none.
	Doors []string `envDefault:"mcp"`
}

// none is the value of Settings.Doors for no door at all.
const none = "none"

// Door serves a protocol once it is registered.
type Door interface{ Register(fiber.Router) }

// Runner runs programs for all doors. It is a *client.Client.
type Runner interface {
	capture.Runner
	Languages(ctx context.Context) ([]execution.Language, error)
}

// Kind is a protocol that there is a door for.
type Kind struct {
	// New returns a door for HTTP that runs programs by runner.
	New func(runner Runner, log *slog.Logger) Door
	// Stdio, if not nil, speaks the protocol on two streams until in or ctx ends.
	Stdio func(ctx context.Context, runner capture.Runner, in io.Reader, out io.Writer, log *slog.Logger) error
	// Title says what it is.
	Title string
}

// All lists the doors by their names.
func All() map[string]Kind {
	return map[string]Kind{
		"mcp":    {Title: "the Model Context Protocol", New: func(r Runner, l *slog.Logger) Door { return mcp.New(r, l) }, Stdio: mcp.ServeStdio},
		"piston": {Title: "Piston's second interface", New: func(r Runner, _ *slog.Logger) Door { return piston.New(r) }},
	}
}

// Register adds the configured doors to r. They run programs by runner.
func (s Settings) Register(r fiber.Router, runner Runner, log *slog.Logger) error {
	all := All()
	names := slices.Compact(slices.Sorted(slices.Values(s.Doors)))
	for _, name := range names {
		kind, ok := all[name]
		switch {
		case ok:
			kind.New(runner, log).Register(r)
		case name != none || len(names) > 1:
			return fmt.Errorf("PREHEAT_DOORS lists what is no door; there are: %s, or %s alone", strings.Join(slices.Sorted(maps.Keys(all)), ", "), none)
		}
	}
	return nil
}
