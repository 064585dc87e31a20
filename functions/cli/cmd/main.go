// Command cmd is the command line alone, for machines that have no server: it
// builds wherever Go does. See package cli.
package main

import (
	"context"
	"os"

	"github.com/preheat-dev/preheat/functions/cli"
	"github.com/preheat-dev/preheat/internal/process"
)

func main() {
	code := 0
	process.Main("preheat", func(ctx context.Context) (err error) {
		code, err = cli.Main(ctx, nil)
		return err
	})
	os.Exit(code)
}
