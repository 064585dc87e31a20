package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// check says what the machine lacks, all of it at once.
func (n *Node) check() error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root: run this as root")
	}
	var errs []error
	for name, pkg := range map[string]string{"ip": "iproute2", "iptables": "iptables", "nft": "nftables", "ipset": "ipset", "mount": "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("the command %s is missing: install the package %s", name, pkg))
		}
	}
	if _, err := os.Stat(n.config.Runc); err != nil {
		errs = append(errs, fmt.Errorf("there is no runc at %s: `make build/bin/runc` builds it", n.config.Runc))
	}
	systems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !strings.Contains(string(systems), "\toverlay\n") {
		errs = append(errs, errors.New("the kernel has no overlay file system: `modprobe overlay` may help"))
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		errs = append(errs, errors.New("the kernel does not filter bridges: `modprobe br_netfilter` may help"))
	}
	return errors.Join(errs...)
}
