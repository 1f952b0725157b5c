// $N idle connections (10,000): memory of the server for each, page tables included, and CPU of an idle second.
// The clients are $IDLE_LOAD, the same as for pirn.
package main

import (
	"fmt"
	"gobench/bench"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

var heard atomic.Int64

func serve(c net.Conn) {
	defer c.Close()
	b := make([]byte, 64)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
		heard.Add(1)
	}
}

func memory() float64 {
	return float64(bench.RSS("VmRSS") + bench.RSS("VmPTE"))
}

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	w := bench.Workers()
	n := bench.Int("N", 10000)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(err)
	before := memory()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	load := exec.Command(os.Getenv("IDLE_LOAD"), "load", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), strconv.Itoa(n))
	to, err := load.StdinPipe()
	check(err)
	from, err := load.StdoutPipe()
	check(err)
	check(load.Start())
	text := make([]byte, 32)
	_, err = from.Read(text[:1])
	check(err)
	for heard.Load() < int64(n) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("idle_bytes %d %.1f\n", w, (memory()-before)/float64(n))
	time.Sleep(100 * time.Millisecond)
	used := cpu()
	to.Write([]byte("g"))
	_, err = from.Read(text)
	check(err)
	fmt.Printf("idle_cpu %d %.1f\n", w, cpu()-used)
}
