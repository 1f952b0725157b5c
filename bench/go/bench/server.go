package bench

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// CPU is what this process has used, in ns.
func CPU() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// Listen serves each connection in a goroutine of its own, and returns the port.
func Listen(serve func(net.Conn)) int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	Check(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// Load is the program of the clients, which is the same as for pirn.
type Load struct {
	to   io.Writer
	from io.Reader
}

// StartLoad starts the program that the variable names, with n clients, and returns when they are connected.
func StartLoad(variable string, port, n int) *Load {
	cmd := exec.Command(os.Getenv(variable), "load", strconv.Itoa(port), strconv.Itoa(n))
	to, err := cmd.StdinPipe()
	Check(err)
	from, err := cmd.StdoutPipe()
	Check(err)
	Check(cmd.Start())
	_, err = from.Read(make([]byte, 1))
	Check(err)
	return &Load{to, from}
}

// Run lets the clients do their work, and returns how much they have done.
func (l *Load) Run() float64 {
	l.to.Write([]byte("g"))
	text := make([]byte, 32)
	n, err := l.from.Read(text)
	Check(err)
	done, err := strconv.ParseFloat(strings.TrimSpace(string(text[:n])), 64)
	Check(err)
	return done
}

// EachNs is the time that each took, of all LOAD_MS.
func EachNs(done float64) float64 {
	return float64(Int("LOAD_MS", 500)) * 1e6 / done
}
