// Package cli is the command line of preheat: it runs programs on a server,
// shows its pools, and speaks the protocols of doors on stdin and stdout.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/preheat-dev/preheat/client"
)

// The exit codes of a command that is not a program's own.
const (
	exitFailed      = 125
	exitInterrupted = 130
)

// Streams are those of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// options are those of every command that calls a server.
type options struct {
	server string
	json   bool
	Streams
}

// Main runs the command of the process's arguments and returns its exit code,
// which is the program's own where one was run. Without a command it serves, or
// shows its help where serve is nil. The error is serve's.
func Main(ctx context.Context, serve func(context.Context) error) (code int, err error) {
	if len(os.Args) == 1 && serve != nil {
		return 0, serve(ctx)
	}
	return Run(ctx, os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr}, os.Getenv("PREHEAT_URL")), nil
}

// Run runs the command of args and returns its exit code. What went wrong
// stands on s.Err. server is the one to call where no flag names it.
func Run(ctx context.Context, args []string, s Streams, server string) (code int) {
	o := &options{Streams: s}
	root := &cobra.Command{
		Use: "preheat", Short: "Run code in sandboxes that are already warm", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.PersistentFlags().StringVar(&o.server, "server", cmp.Or(server, "http://127.0.0.1:8080"), "the server's URL; PREHEAT_URL is another way to say it")
	root.AddCommand(o.runCommand(&code), o.poolsCommand())
	root.AddCommand(o.doorCommands()...)
	switch err := root.ExecuteContext(ctx); {
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		_, _ = fmt.Fprintf(s.Err, "preheat: %v\n", err)
		return exitFailed
	}
	return code
}

func (o *options) client() (*client.Client, error) {
	c, err := client.New(o.server, nil)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	return c, nil
}

// jsonFlag adds --json to a command that prints something for people.
func (o *options) jsonFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (o *options) print(v any) error {
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

var errStdinTwice = errors.New("standard input is the program: it cannot be its input, too")
