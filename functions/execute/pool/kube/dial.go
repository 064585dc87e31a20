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
func dial(ctx context.Context, pod *corev1.Pod) *dialing {
	ctx, stop := context.WithCancel(ctx)
	d := &dialing{stop: stop, done: make(chan struct{})}
	token, address := runner(pod)
	go func() { // await and cancel wait for it
		defer close(d.done)
		d.conn, d.runner, d.err = greet(ctx, address, token)
	}()
	return d
}

// greet connects to a runner and shows it the token.
func greet(ctx context.Context, address, token string) (net.Conn, *wire.Client, error) {
	conn, err := connectTo(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	client := wire.NewClient(conn, token)
	if err := client.Hello(ctx); err != nil {
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
	_, address := runner(pod)
	conn, err := connectTo(ctx, address)
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
	s := &sandbox{owner: a.Pool, name: pod.Name, poolName: a.pool.Name, claim: a.name, kept: a.want.Event != "", conn: d.conn, runner: d.runner}
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

// runner returns a Pod's token and its runner's address.
func runner(pod *corev1.Pod) (token, address string) {
	if len(pod.Spec.Containers) == 0 {
		return "", ""
	}
	for _, e := range pod.Spec.Containers[0].Env {
		switch e.Name {
		case v1alpha1.EnvToken:
			token = e.Value
		case v1alpha1.EnvListen:
			if _, port, err := net.SplitHostPort(e.Value); err == nil {
				if _, err := strconv.ParseUint(port, 10, 16); err == nil {
					address = net.JoinHostPort(pod.Status.PodIP, port)
				}
			}
		}
	}
	return token, address
}
