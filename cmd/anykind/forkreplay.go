package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/anykind/anykind/internal/offline/fork"
)

// addReplay adds the replay to the spec.
func (f *forkFlags) addReplay() error {
	if !f.replay {
		if f.speed != "max" || len(f.without) > 0 {
			return usageError{errors.New("--speed and --without-user need --replay")}
		}
		return nil
	}
	if f.asOf == "" {
		return usageError{errors.New("--replay needs --as-of: it repeats the changes since then")}
	}
	f.spec.Replay = &fork.Replay{Without: f.without}
	if f.speed == "max" {
		return nil
	}
	speed, err := strconv.ParseFloat(f.speed, 64)
	if err != nil || !(speed > 0) || math.IsInf(speed, 0) {
		return usageError{fmt.Errorf("--speed is %q: want a number above 0, such as 60, or max", f.speed)}
	}
	f.spec.Replay.Speed = speed
	return nil
}
