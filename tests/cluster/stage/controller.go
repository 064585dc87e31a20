package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Controller is the controller as a program.
type Controller struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

var controllers atomic.Int32

// Controller starts the controller for the namespace. It is killed at the
// test's end, and its log shown if the test failed.
func (sp *Space) Controller() *Controller {
	sp.TB.Helper()
	config := sp.Config()
	AsController(config)
	return sp.ControllerAt(config)
}

// ControllerAt is Controller by another way to the API server.
func (sp *Space) ControllerAt(config *rest.Config) *Controller {
	sp.TB.Helper()
	c := &Controller{done: make(chan struct{})}
	base := filepath.Join(sp.dir, fmt.Sprintf("%s-controller-%d", sp.Namespace, controllers.Add(1)))
	c.log = base + ".log"
	if err := writeKubeconfig(base+".kubeconfig", config); err != nil {
		sp.TB.Fatalf("write a kubeconfig: %v", err)
	}
	log, err := os.Create(c.log)
	if err != nil {
		sp.TB.Fatal(err)
	}
	c.cmd = exec.Command(sp.controller, "--kubeconfig", base+".kubeconfig")
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(), "SYSTEM_NAMESPACE="+sp.Namespace, "PREHEAT_NAMESPACE="+sp.Namespace,
		"PREHEAT_PROBE_ADDRESS=127.0.0.1:0")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The signal at the parent's death is tied to this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		defer log.Close()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // it is ended by a signal
		}
	}()
	if err := <-started; err != nil {
		sp.TB.Fatalf("start the controller: %v", err)
	}
	sp.TB.Cleanup(func() {
		c.Kill()
		if sp.TB.Failed() {
			out, err := os.ReadFile(c.log)
			sp.TB.Logf("the controller's log (%v):\n%s", err, out[max(0, len(out)-8000):])
		}
	})
	return c
}

// Kill kills the controller, as a crash would.
func (c *Controller) Kill() { c.end(syscall.SIGKILL) }

// Stop ends the controller in order.
func (c *Controller) Stop() { c.end(syscall.SIGTERM) }

func (c *Controller) end(s syscall.Signal) {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	<-c.done
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "stage"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Impersonate: config.Impersonate.UserName,
	}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return clientcmd.WriteToFile(*c, path)
}
