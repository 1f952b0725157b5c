// What preemption costs those that compute: two loops without calls for each P, in registers, and with
// 256 KB each, whose cache lines they follow in random order and write to; ns of CPU time a unit of work
// with preemption, and without (_off), when one runs to its end before the other begins. GODEBUG=asyncpreemptoff=1 counts from a program's start on, so
// every round is a process: this program, with LOOP in its environment. Least of rounds that take turns.
package main

import (
	"fmt"
	"gobench/bench"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	unit  = 1024            // steps
	lines = 256 * 1024 / 64 // of a working set
)

type line struct {
	next, count uint64
	_           [48]byte
}

type set [lines]line

var sink [64]uint64

func step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

// shuffle links all lines to one ring in random order.
func (s *set) shuffle(x uint64) {
	for i := range s {
		s[i].next = uint64(i)
	}
	for i := uint64(lines - 1); i > 0; i-- {
		x = step(x)
		s[i].next, s[x%i].next = s[x%i].next, s[i].next
	}
}

func registers(x uint64, units int) uint64 {
	for i := 0; i < units*unit; i++ {
		x = step(x)
	}
	return x
}

func memory(s *set, units int) uint64 {
	at := uint64(0)
	for i := 0; i < units*unit; i++ {
		s[at].count++
		at = s[at].next
	}
	return at
}

func cpu() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

func round(w, units int, loop string) {
	if loop != "regs" {
		units /= 2
	}
	loops := 2 * w
	sets := make([]set, loops)
	for g := range sets {
		sets[g].shuffle(uint64(g) + 1)
	}
	var wg sync.WaitGroup
	wg.Add(loops)
	t0 := cpu()
	for g := 0; g < loops; g++ {
		go func(g int) {
			if loop == "regs" {
				sink[g] = registers(uint64(g)+1, units)
			} else {
				sink[g] = memory(&sets[g], units)
			}
			wg.Done()
		}(g)
	}
	wg.Wait()
	fmt.Println(float64(cpu()-t0) / float64(loops*units))
}

func main() {
	w := bench.Workers()
	units := bench.Int("N", 60000)
	if loop := os.Getenv("LOOP"); loop != "" {
		round(w, units, loop)
		return
	}
	for _, loop := range []string{"regs", "256k"} {
		var best [2]float64
		for r := 0; r < bench.Int("ROUNDS", 10); r++ {
			for off := range best {
				c := exec.Command("/proc/self/exe")
				c.Env = append(os.Environ(), "LOOP="+loop, fmt.Sprint("GODEBUG=asyncpreemptoff=", off))
				c.Stderr = os.Stderr
				out, err := c.Output()
				if err != nil {
					panic(err)
				}
				ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				if err != nil {
					panic(err)
				}
				if r == 0 || ns < best[off] {
					best[off] = ns
				}
			}
		}
		fmt.Printf("preempt_%s %d %.2f\n", loop, w, best[0])
		fmt.Printf("preempt_%s_off %d %.2f\n", loop, w, best[1])
	}
}
