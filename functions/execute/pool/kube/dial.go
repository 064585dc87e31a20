package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// dialing is a connection to a runner on its way. It is made while the sandbox is
// being claimed: a runner takes any number of them and one run, with its token.
type dialing struct {
	token string
	stop  context.CancelFunc
	done  chan struct{}
	made  net.Conn // after done
	err   error    // after done
}

// dial begins to connect to a Pod's runner. Its caller has to call conn or
// cancel.
func dial(ctx context.Context, pod *corev1.Pod) *dialing {
	ctx, stop := context.WithTimeout(ctx, dialTimeout)
	d := &dialing{stop: stop, done: make(chan struct{})}
	token, address := runner(pod)
	d.token = token
	go func() { // conn and cancel wait for it
		defer close(d.done)
		if address == "" {
			d.err = errors.New("it does not say where its runner listens")
			return
		}
		d.made, d.err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}()
	return d
}

// conn waits for the connection.
func (d *dialing) conn() (net.Conn, error) {
	<-d.done
	d.stop()
	return d.made, d.err
}

// cancel gives the connection up.
func (d *dialing) cancel() {
	d.stop()
	if conn, err := d.conn(); err == nil {
		_ = conn.Close()
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
	conn, err := a.reached(ctx, pod, d)
	if err != nil {
		return nil, err
	}
	if a.want.Event != "" {
		if err := a.begun(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("mark claim %s as begun: %w", a.name, err)
		}
		a.running.begin(a.want.Event, a.uid, a.want.Deadline)
	}
	s := &sandbox{owner: a.Pool, name: pod.Name, poolName: a.pool.Name, claim: a.name, kept: a.want.Event != "", token: d.token, conn: conn}
	if pod.Spec.ActiveDeadlineSeconds == nil { // the controller sets it as it binds
		s.lifetime = a.lifetime(a.cache.known(pod))
	}
	a.cache.hold(s)
	return s, nil
}

// reached waits for the connection to a Pod, and notes whether its runner could
// be reached unless ctx has ended.
func (a *attempt) reached(ctx context.Context, pod *corev1.Pod, d *dialing) (net.Conn, error) {
	conn, err := d.conn()
	if err == nil {
		a.reach.report(a.pool.Name, pod, nil)
		return conn, nil
	}
	if ctx.Err() == nil {
		a.reach.report(a.pool.Name, pod, err)
	}
	return nil, fmt.Errorf("%w: reach the runner of sandbox %s: %w", errUnusable, pod.Name, err)
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
