package netns_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// What is done inside a namespace sees that one's interfaces, what is done
// outside does not, and no name is left.
func TestNamespace(t *testing.T) {
	name := fmt.Sprintf("preheat-test-%d", os.Getpid())
	if netns.Exists(name) {
		t.Fatalf("namespace %s is there before it was made", name)
	}
	if err := netns.Add(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Delete(name); err != nil {
			t.Error(err)
		}
		if netns.Exists(name) {
			t.Error("it is there after it was deleted")
		}
	})
	if !netns.Exists(name) {
		t.Error("it is not there")
	}
	if err := netns.IP(t.Context(), name, "link", "set", "lo", "up"); err != nil {
		t.Fatal(err)
	}
	if err := netns.IP(t.Context(), name, "link", "add", "inside0", "type", "veth", "peer", "name", "inside1"); err != nil {
		t.Fatal(err)
	}
	look := func() error {
		_, err := net.InterfaceByName("inside0")
		return err
	}
	if err := netns.Do(name, look); err != nil {
		t.Errorf("inside: %v", err)
	}
	for range 10 {
		if look() == nil {
			t.Error("the interface is outside")
		}
	}
	failure := errors.New("failure")
	if err := netns.Do(name, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("the error of what was done inside: %v", err)
	}
	if err := netns.Do("no-such-namespace", look); err == nil {
		t.Error("there is no such namespace")
	}
}
