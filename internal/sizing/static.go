package sizing

import "time"

// Static is a pool of one size.
type Static int

// Arrived implements Policy.
func (Static) Arrived(time.Duration) {}

// Size implements Policy.
func (s Static) Size(time.Duration) int { return int(s) }
