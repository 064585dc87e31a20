package node

// Running lists the programs of the node, and whether they run.
func (n *Node) Running() (up, down []string) {
	for _, name := range programs {
		if n.daemon(name).alive() {
			up = append(up, name)
		} else {
			down = append(down, name)
		}
	}
	return up, down
}
