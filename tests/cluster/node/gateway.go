package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// Forward is a way into the network namespace: from an address of this machine
// to one inside.
type Forward struct{ From, To string }

// StartGateway starts this program again, outside of the namespace, with
// arguments by which it calls Gateway, and returns when address takes
// connections.
func (n *Node) StartGateway(ctx context.Context, address string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := n.startIn("", gateway, self, args...); err != nil {
		return err
	}
	return n.await(ctx, gateway, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Gateway passes connections into the network namespace until ctx ends. There
// is no other way in, and none out.
func Gateway(ctx context.Context, namespace string, forwards ...Forward) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	failed := make(chan error, len(forwards))
	for _, f := range forwards {
		l, err := net.Listen("tcp", f.From)
		if err != nil {
			cancel()
			return fmt.Errorf("listen for the cluster: %w", err)
		}
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		defer stop()
		work.Go(func() { failed <- accept(ctx, l, namespace, f.To) })
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		cancel()
		return err
	}
}

func accept(ctx context.Context, l net.Listener, namespace, to string) error {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		work.Go(func() {
			defer conn.Close()
			pass(ctx, conn.(*net.TCPConn), namespace, to)
		})
	}
}

// pass connects a client to the address inside, until both sides have ended.
func pass(ctx context.Context, client *net.TCPConn, namespace, to string) {
	var inside net.Conn
	if err := netns.Do(namespace, func() (err error) {
		d := net.Dialer{Timeout: 10 * time.Second}
		inside, err = d.DialContext(ctx, "tcp", to)
		return err
	}); err != nil {
		return // the client sees its connection end
	}
	server := inside.(*net.TCPConn)
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // an end is an end
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}
