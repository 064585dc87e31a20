// Package process runs programs until they are to stop.
package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a program, whose context ends with the first SIGINT or SIGTERM; a
// second one ends the process at once. It exits with 1 when run fails, and says
// why on standard error.
func Main(name string, run func(context.Context) error) {
	if err := untilSignal(run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func untilSignal(run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
		}
		// The default is back before anybody learns of the first one.
		signal.Stop(signals)
		cancel()
	}()
	defer func() {
		cancel()
		<-done
	}()
	return run(ctx)
}
