// Connections that come and go, a goroutine each: server CPU of one, and their rate, with $N clients at a time.
// The clients are $ACCEPT_LOAD, the same as for pirn.
package main

import (
	"fmt"
	"gobench/bench"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func serve(c net.Conn) {
	defer c.Close()
	b := []byte{'x'}
	c.Write(b)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
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
	n := bench.Int("N", 50)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	load := exec.Command(os.Getenv("ACCEPT_LOAD"), "load", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), strconv.Itoa(n))
	to, err := load.StdinPipe()
	check(err)
	from, err := load.StdoutPipe()
	check(err)
	check(load.Start())
	text := make([]byte, 32)
	_, err = from.Read(text[:1])
	check(err)
	before := cpu()
	to.Write([]byte("g"))
	k, err := from.Read(text)
	check(err)
	used := cpu() - before
	done, err := strconv.ParseFloat(strings.TrimSpace(string(text[:k])), 64)
	check(err)
	fmt.Printf("accept %d %.1f\n", w, used/done)
	fmt.Printf("accept_rate %d %.1f\n", w, float64(bench.Int("LOAD_MS", 500))*1e6/done)
}
