// Command cluster builds and runs what the tests need of Kubernetes.
//
//	cluster build   build the programs into the user's cache
//	cluster run     run an API server until interrupted, and print its kubeconfig
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) == 1 {
		command = args[0]
	}
	switch command {
	case "build":
		for _, tool := range []binaries.Tool{binaries.Etcd, binaries.Kube} {
			if err := tool.Build(ctx, os.Stderr); err != nil {
				return err
			}
		}
		return nil
	case "run":
		return serve(ctx)
	}
	return fmt.Errorf("usage: cluster build | run")
}

func serve(ctx context.Context) (err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := cp.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Println(cp.Kubeconfig())
	<-ctx.Done()
	return nil
}
