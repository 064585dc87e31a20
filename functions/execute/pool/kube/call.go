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

// call is a connection to a runner on its way. It is made while the sandbox is
// being claimed: a runner takes any number of them and one run, with its token.
type call struct {
	token  string
	cancel context.CancelFunc
	done   chan struct{}
	conn   net.Conn // after done
	err    error    // after done
}

// dial begins to connect to a Pod's runner. Its caller has to take the
// connection or to hang up.
func dial(ctx context.Context, pod *corev1.Pod) *call {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	c := &call{cancel: cancel, done: make(chan struct{})}
	token, address := runner(pod)
	c.token = token
	go func() { // take and hangUp wait for it
		defer close(c.done)
		if address == "" {
			c.err = errors.New("it does not say where its runner listens")
			return
		}
		c.conn, c.err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}()
	return c
}

// take waits for the connection.
func (c *call) take() (net.Conn, error) {
	<-c.done
	c.cancel()
	return c.conn, c.err
}

// hangUp gives the connection up.
func (c *call) hangUp() {
	c.cancel()
	if conn, err := c.take(); err == nil {
		_ = conn.Close()
	}
}

// connect returns the sandbox in a Pod that is ours, which also shows that it
// is alive. It takes the call. The claim of an event says from then on that its
// program may have begun.
func (a *attempt) connect(ctx context.Context, pod *corev1.Pod, c *call) (*sandbox, error) {
	if !reachable(pod) {
		c.hangUp()
		return nil, fmt.Errorf("%w: sandbox %s is no longer ready", errUnusable, pod.Name)
	}
	conn, err := a.reached(ctx, pod, c)
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
	s := &sandbox{owner: a.Pool, name: pod.Name, poolName: a.pool.Name, claim: a.name, kept: a.want.Event != "", token: c.token, conn: conn}
	if pod.Spec.ActiveDeadlineSeconds == nil { // the controller sets it as it binds
		s.lifetime = a.lifetime(a.cache.known(pod))
	}
	a.cache.hold(s)
	return s, nil
}

// reached waits for the connection to a Pod, and notes whether its runner could
// be reached unless ctx has ended.
func (a *attempt) reached(ctx context.Context, pod *corev1.Pod, c *call) (net.Conn, error) {
	conn, err := c.take()
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
