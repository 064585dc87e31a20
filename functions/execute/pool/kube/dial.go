package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// dialing is a connection to a runner on its way. It is made while the sandbox is
// being claimed: a runner takes several that show its token, and one run.
type dialing struct {
	stop   context.CancelFunc
	done   chan struct{}
	conn   net.Conn     // after done
	runner *wire.Client // after done, of conn
	err    error        // after done
}

// dial begins to connect to a Pod's runner. Its caller has to call await or
// cancel.
func (a *attempt) dial(ctx context.Context, pod *corev1.Pod) *dialing {
	ctx, stop := context.WithCancel(ctx)
	d := &dialing{stop: stop, done: make(chan struct{})}
	go func() { // await and cancel wait for it
		defer close(d.done)
		var token string
		if token, d.err = a.keys.token(ctx, pod); d.err == nil {
			d.conn, d.runner, d.err = greet(ctx, runner(pod), token, a.session != nil)
		}
	}()
	return d
}

// greet connects to a runner and shows it the token, with which what is to be a
// session's connection waits until it is one.
func greet(ctx context.Context, address, token string, session bool) (net.Conn, *wire.Client, error) {
	conn, err := connectTo(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	client := wire.NewClient(conn, token)
	hello := client.Hello
	if session {
		hello = client.Ready
	}
	if err := hello(ctx); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, client, nil
}

func connectTo(ctx context.Context, address string) (net.Conn, error) {
	if address == "" {
		return nil, errors.New("it does not say where its runner listens")
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
}

// probe connects to a Pod's runner and sends nothing, which leaves it as it is.
func probe(ctx context.Context, pod *corev1.Pod) error {
	conn, err := connectTo(ctx, runner(pod))
	if err != nil {
		return err
	}
	return conn.Close()
}

// await waits for the connection.
func (d *dialing) await() error {
	<-d.done
	d.stop()
	return d.err
}

// cancel gives the connection up.
func (d *dialing) cancel() {
	d.stop()
	if d.await() == nil {
		_ = d.conn.Close()
	}
}

// connect returns the sandbox in a Pod that is ours, which also shows that it
// is alive. It takes the connection. The claim of an event says from then on that its
// program may have begun.
func (a *attempt) connect(ctx context.Context, pod *corev1.Pod, d *dialing) (*sandbox, error) {
	if !reachable(pod) {
		d.cancel()
		return nil, fmt.Errorf("%w: sandbox %s is no longer ready", errUnusable, pod.Name)
	}
	if err := a.reached(ctx, pod, d); err != nil {
		return nil, err
	}
	if a.want.Event != "" {
		if err := a.begun(ctx); err != nil {
			_ = d.conn.Close()
			return nil, fmt.Errorf("mark claim %s as begun: %w", a.name, err)
		}
		a.running.begin(a.want.Event, a.uid, a.want.Deadline)
	}
	s := &sandbox{owner: a.Pool, pod: pod, name: pod.Name, poolName: a.pool.Name, claim: a.name, kept: a.want.Event != "", conn: d.conn, runner: d.runner, ended: make(chan *corev1.Pod, 1)}
	if pod.Spec.ActiveDeadlineSeconds == nil { // the controller sets it as it binds
		s.lifetime = a.lifetime(a.cache.known(pod))
	}
	a.cache.hold(s)
	return s, nil
}

// reached waits for the connection to a Pod, and notes whether its runner could
// be reached unless ctx has ended.
func (a *attempt) reached(ctx context.Context, pod *corev1.Pod, d *dialing) error {
	err := d.await()
	if err == nil || ctx.Err() == nil {
		a.reach.report(a.pool.Name, pod, err)
	}
	if err != nil {
		return fmt.Errorf("%w: reach the runner of sandbox %s: %w", errUnusable, pod.Name, err)
	}
	return nil
}

// runner returns the address of a Pod's runner; empty if it says none.
func runner(pod *corev1.Pod) string {
	_, port, err := net.SplitHostPort(env(pod, v1alpha1.EnvListen))
	if err != nil {
		return ""
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return net.JoinHostPort(pod.Status.PodIP, port)
}

// env returns a variable of a Pod's first container.
func env(pod *corev1.Pod, name string) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	value := ""
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			value = e.Value // the last one counts
		}
	}
	return value
}
