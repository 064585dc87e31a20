// Command cluster builds and runs what the tests need of Kubernetes.
//
//	cluster build [TOOL...]  build etcd and Kubernetes into the user's cache, or what is named, or all
//	cluster run              run an API server alone until interrupted, and print its kubeconfig
//	cluster up               run a node with Knative Serving, or what of it does not run
//	cluster down             end it and remove what it left
//	cluster status           say which of its programs run
//	cluster logs [PROGRAM]   print the log of one program, or the end of each
//	cluster images           list the images that it has
//	cluster load FILE...     import archives of images
//	cluster http-port        print the port of its ingress
//	cluster which PROGRAM    print the path of a built program, such as kubectl
//	cluster kubectl ARG...   run kubectl as its administrator
//	cluster exec COMMAND...  run a command in its network namespace
//
// Flags come before the command; -name tells clusters apart.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
	"github.com/preheat-dev/preheat/tests/cluster/node"
)

const usage = "usage: cluster [FLAG ...] build [TOOL ... | all] | run | up | down | status | logs [PROGRAM] | images | load FILE ... | http-port | which PROGRAM | kubectl ARG ... | exec COMMAND ..."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	name     string
	apiPort  int
	httpPort int
	runc     string
	runsc    string
	knative  bool
}

func run(ctx context.Context, args []string) error {
	var s settings
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", fromEnv("PREHEAT_CLUSTER", "main"), "the cluster's `name` (PREHEAT_CLUSTER)")
	flags.IntVar(&s.apiPort, "api-port", 6443, "the API server's `port` on 127.0.0.1")
	flags.IntVar(&s.httpPort, "http-port", 8088, "the ingress' `port` on 127.0.0.1")
	flags.StringVar(&s.runc, "runc", "", "the `path` of runc, by default build/bin/runc")
	flags.StringVar(&s.runsc, "runsc", "", "the `path` of gVisor's runsc, by default build/bin/runsc if make gvisor has built it")
	flags.BoolVar(&s.knative, "knative", true, "install Knative Serving and its ingress")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("%s", usage)
	}
	root, err := binaries.ModuleRoot()
	if err != nil && (s.runc == "" || s.runsc == "") {
		return err
	}
	s.runc = cmp.Or(s.runc, filepath.Join(root, "build", "bin", "runc"))
	s.runsc = cmp.Or(s.runsc, filepath.Join(root, "build", "bin", "runsc"))
	n := node.New(node.Config{Name: s.name, APIPort: s.apiPort, Runc: s.runc, Runsc: s.runsc})
	return dispatch(ctx, s, n, flags.Arg(0), flags.Args()[1:])
}

func dispatch(ctx context.Context, s settings, n *node.Node, command string, args []string) error {
	switch {
	case command == "build":
		return build(ctx, args)
	case command == "run" && len(args) == 0:
		return serve(ctx)
	case command == "up" && len(args) == 0:
		return up(ctx, s, n)
	case command == "down" && len(args) == 0:
		return down(ctx, n)
	case command == "status" && len(args) == 0:
		return status(ctx, n)
	case command == "logs":
		return logs(n, args)
	case command == "images" && len(args) == 0:
		return images(ctx, n)
	case command == "http-port" && len(args) == 0:
		return printHTTPPort(n)
	case command == "which" && len(args) == 1:
		return which(args[0])
	case command == "load":
		return load(ctx, n, args)
	case command == "kubectl":
		return kubectl(ctx, n, args)
	case command == "exec" && len(args) > 0:
		return enter(n, args)
	case command == gatewayCommand && len(args) == 0:
		return serveGateway(ctx, s, n)
	}
	return fmt.Errorf("%s", usage)
}

func fromEnv(name, standard string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return standard
}

// build builds tools by name; without any, those of an API server alone.
func build(ctx context.Context, names []string) error {
	tools := []binaries.Tool{binaries.Etcd, binaries.Kube}
	if len(names) > 0 {
		tools = slices.DeleteFunc(binaries.All(), func(t binaries.Tool) bool {
			return !slices.Contains(names, "all") && !slices.Contains(names, t.Name())
		})
	}
	if len(tools) == 0 {
		return fmt.Errorf("there is no tool %v", names)
	}
	for i, tool := range tools {
		fmt.Fprintf(os.Stderr, "[%d/%d] ", i+1, len(tools))
		if err := tool.Build(ctx, os.Stderr); err != nil {
			return err
		}
	}
	return nil
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
