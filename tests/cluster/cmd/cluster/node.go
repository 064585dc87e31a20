package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/addons"
	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/netns"
	"github.com/preheat-dev/preheat/tests/cluster/node"
)

// gatewayCommand is what up starts, and nobody else.
const gatewayCommand = "gateway"

// logEnd is how much of each log is shown when none is named.
const logEnd = 2000

func up(ctx context.Context, s settings, n *node.Node) error {
	began := time.Now()
	progress := func(what string) {
		fmt.Fprintf(os.Stderr, "%6.1fs %s\n", time.Since(began).Seconds(), what)
	}
	load := func(ctx context.Context) error { return addons.Load(ctx, n, s.knative) }
	if err := n.Up(ctx, load, progress); err != nil {
		return err
	}
	if err := addons.InstallDNS(ctx, n, progress); err != nil {
		return err
	}
	if n.GVisor() {
		if err := addons.InstallGVisor(ctx, n, progress); err != nil {
			return err
		}
	}
	if s.knative {
		if err := addons.InstallKnative(ctx, n, progress); err != nil {
			return err
		}
	}
	if err := n.StartGateway(ctx, loopback(s.apiPort), "-name", s.name, "-runc", s.runc, "-runsc", s.runsc,
		"-api-port", strconv.Itoa(s.apiPort), "-http-port", strconv.Itoa(s.httpPort), gatewayCommand); err != nil {
		return err
	}
	if err := os.WriteFile(httpPortFile(n), fmt.Appendln(nil, s.httpPort), 0o644); err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", n.Kubeconfig())
	fmt.Fprintf(os.Stderr, "Knative Services answer at http://NAME.NAMESPACE.localhost:%d\n", s.httpPort)
	return nil
}

// httpPortFile remembers the port of the ingress.
func httpPortFile(n *node.Node) string { return filepath.Join(n.State(), "http-port") }

func printHTTPPort(n *node.Node) error {
	port, err := os.ReadFile(httpPortFile(n))
	if err != nil {
		return errors.New("the cluster is down: `cluster up` starts it")
	}
	_, err = os.Stdout.Write(port)
	return err
}

// which prints where a built program is.
func which(name string) error {
	for _, tool := range binaries.All() {
		dir, err := tool.Dir()
		if err != nil {
			continue
		}
		if path := filepath.Join(dir, name); filepath.IsLocal(name) {
			if _, err := os.Stat(path); err == nil {
				fmt.Println(path)
				return nil
			}
		}
	}
	return fmt.Errorf("no program %s has been built", name)
}

func images(ctx context.Context, n *node.Node) error {
	have, err := n.Images(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		fmt.Println(name)
	}
	return nil
}

func serveGateway(ctx context.Context, s settings, n *node.Node) error {
	api := loopback(s.apiPort)
	return node.Gateway(ctx, n.Namespace(), node.Forward{From: api, To: api}, node.Forward{From: loopback(s.httpPort), To: addons.Ingress})
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func down(ctx context.Context, n *node.Node) error {
	began := time.Now()
	return n.Down(ctx, func(what string) {
		fmt.Fprintf(os.Stderr, "%6.1fs ended: %s\n", time.Since(began).Seconds(), what)
	})
}

func status(ctx context.Context, n *node.Node) error {
	running, not := n.Running()
	fmt.Println("runs:", strings.Join(running, " "))
	if len(not) > 0 {
		fmt.Println("does not run:", strings.Join(not, " "))
	}
	if len(running) == 0 {
		return errors.New("the cluster is down: `cluster up` starts it")
	}
	return kubectl(ctx, n, []string{"get", "pods", "-A"})
}

func logs(n *node.Node, names []string) error {
	if len(names) > 0 {
		for _, name := range names {
			log, err := os.ReadFile(n.Log(filepath.Base(name)))
			if err != nil {
				return err
			}
			if _, err := os.Stdout.Write(log); err != nil {
				return err
			}
		}
		return nil
	}
	files, err := filepath.Glob(n.Log("*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("there are no logs: the cluster is down")
	}
	slices.Sort(files)
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Printf("==> %s\n%s\n", file, log[max(0, len(log)-logEnd):])
	}
	return nil
}

func load(ctx context.Context, n *node.Node, files []string) error {
	if len(files) == 0 {
		return errors.New("load needs the files of images")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = n.Import(ctx, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("load %s: %w", file, err)
		}
	}
	return nil
}

func kubectl(ctx context.Context, n *node.Node, args []string) error {
	cmd, err := n.Kubectl(ctx, args...)
	if err != nil {
		return err
	}
	if !netns.Exists(n.Namespace()) {
		return errors.New("the cluster is down: `cluster up` starts it")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = n.Run(cmd)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode()) // it has said why
	}
	return err
}

// enter becomes a command inside the network namespace.
func enter(n *node.Node, args []string) error {
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := netns.Join(n.Namespace()); err != nil {
		return err
	}
	env := append(os.Environ(), "KUBECONFIG="+n.Kubeconfig())
	return fmt.Errorf("run %s: %w", program, syscall.Exec(program, args, env))
}
