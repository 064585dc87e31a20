// Command checkrunc reports whether Preheat can use a runc: the one at the path
// that is its argument. It fails with the reason if it cannot.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: checkrunc PATH")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runc.CheckRunc(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "checkrunc:", err)
		os.Exit(1)
	}
}
