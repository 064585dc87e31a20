package fakenode

import (
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// check takes in one state of a Pod: a sandbox that was claimed stays that
// claim's.
func (n *Node) check(after *corev1.Pod) {
	was := n.claimed[after.UID]
	is := ""
	if after.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed {
		is = after.Labels[v1alpha1.LabelClaim]
	}
	switch {
	case was == "" && is != "":
		n.claimed[after.UID] = is
	case was != "" && is != "" && was != is:
		n.faults = append(n.faults, fmt.Sprintf("double: sandbox %s went from claim %s to %s", after.Name, was, is))
	case was != "" && after.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm:
		n.faults = append(n.faults, fmt.Sprintf("reuse: claimed sandbox %s is warm again", after.Name))
	}
}

// Faults lists what must not happen and did.
func (n *Node) Faults() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.faults)
}

// Uses returns how many sandboxes have run something.
func (n *Node) Uses() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.uses)
}

// Claimed returns how many sandboxes were ever claimed.
func (n *Node) Claimed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.claimed)
}

// Pods returns the Pods that exist, as last seen.
func (n *Node) Pods() []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*corev1.Pod
	for _, p := range n.pods {
		out = append(out, p)
	}
	return out
}

// serve plays the runners.
func (n *Node) serve() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return // stopped
		}
		n.mu.Lock()
		n.conns[conn] = true
		n.mu.Unlock()
		n.done.Go(func() {
			defer func() {
				_ = conn.Close()
				n.mu.Lock()
				delete(n.conns, conn)
				n.mu.Unlock()
			}()
			n.take(conn)
		})
	}
}

// take answers one run: it writes the sandbox's name, and its UID as an error.
// A Pod that is gone has no runner any more.
func (n *Node) take(conn net.Conn) {
	s := wire.NewServer(conn)
	if s.Ready() != nil {
		return
	}
	hello, err := s.Hello()
	if err != nil {
		return
	}
	run, err := s.ReadRun()
	if err != nil {
		return
	}
	n.mu.Lock()
	pod, ok := n.byHash[token.Hash(hello.Token)]
	if ok {
		n.uses[pod.uid]++
		if n.uses[pod.uid] > 1 {
			n.faults = append(n.faults, fmt.Sprintf("reuse: sandbox %s got run %d", pod.name, n.uses[pod.uid]))
		}
	}
	n.mu.Unlock()
	if !ok {
		_ = s.Fail(&wire.Failure{Code: wire.FailureToken, Detail: "no sandbox has this token"})
		return
	}
	if s.Started() != nil || s.Output(execution.Stdout, []byte(pod.name), 0) != nil || s.Output(execution.Stderr, []byte(pod.uid), 0) != nil {
		return
	}
	if took, err := time.ParseDuration(string(run.Code)); err == nil {
		time.Sleep(took)
	}
	_ = s.Exit(wire.Outcome{Status: execution.StatusSucceeded})
}

// Program is a run that the node's runners take. If its code is a duration, as
// in "2s", it takes that long.
func Program() pool.Run {
	return pool.Run{Language: "python", Limits: pool.Limits{
		Timeout: time.Minute, Output: 1 << 16, TotalOutput: 1 << 16,
		Artifacts: 1, ArtifactBytes: 1 << 10, Results: 1, ResultBytes: 1 << 10,
	}}
}

// Output collects what a run writes, without its errors.
type Output []byte

var _ pool.Sink = (*Output)(nil)

// Started implements pool.Sink.
func (*Output) Started() {}

// Output implements pool.Sink.
func (o *Output) Output(stream execution.Stream, data []byte, _ int64) {
	if stream == execution.Stdout {
		*o = append(*o, data...)
	}
}

// Result implements pool.Sink.
func (*Output) Result(execution.RichResult) {}

// Artifact implements pool.Sink.
func (*Output) Artifact(execution.Artifact) {}
