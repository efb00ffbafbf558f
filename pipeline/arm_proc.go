package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"joinbench/internal/procgroup"
	"joinbench/results"
)

// armProc is an arm's process as its parent sees it. One goroutine uses it.
type armProc struct {
	arm    Arm
	cmd    *exec.Cmd
	orders *os.File
	enc    *json.Encoder
	news   chan armNews // closed when there will be no more
	ended  chan struct{}
	err    error     // why it ended, once it has
	said   lastWords // its standard error
	frozen bool
}

// startArm starts the process: cmd is a call of this program that ends in RunArm with the files 3 and 4.
//
// It has a process group of its own: the terminal's signals are for the parent, which ends its arms in order. When the
// parent dies the orders end, and with them the arm; one that stands still is woken for that.
func startArm(arm Arm, cmd *exec.Cmd) (*armProc, error) {
	ordersIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	news, newsOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ordersIn.Close(), orders.Close())
	}
	p := &armProc{arm: arm, cmd: cmd, orders: orders, enc: json.NewEncoder(orders), news: make(chan armNews, 1),
		ended: make(chan struct{})}
	cmd.ExtraFiles = []*os.File{ordersIn, newsOut}
	cmd.Stderr = &p.said
	cmd.SysProcAttr = procgroup.New(syscall.SIGCONT)
	err = cmd.Start()
	_, _ = ordersIn.Close(), newsOut.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting arm %s: %w", arm.Name, err), orders.Close(), news.Close())
	}
	go p.read(news)
	return p, nil
}

// read hands the news on until there are none any more, and learns how the process ended. The parent takes all news.
func (p *armProc) read(news *os.File) {
	defer close(p.ended)
	dec := json.NewDecoder(news)
	for {
		var n armNews
		if dec.Decode(&n) != nil {
			break
		}
		p.news <- n
	}
	_ = news.Close()
	p.err = p.cmd.Wait()
	close(p.news)
}

// tell gives an order to a process that stands still, and lets it go on.
func (p *armProc) tell(o armOrder) error {
	if err := p.thaw(); err != nil {
		return err
	}
	if err := p.enc.Encode(o); err != nil {
		return p.failure()
	}
	return nil
}

// freeze stops the process while others work: a collection of garbage or what RocksDB does by itself is then paid for in
// the arm's own time.
func (p *armProc) freeze() error {
	p.frozen = true
	return p.signal(syscall.SIGSTOP)
}

func (p *armProc) thaw() error {
	if !p.frozen {
		return nil
	}
	p.frozen = false
	return p.signal(syscall.SIGCONT)
}

// signal sends one; a process that has ended is found out by whoever waits for its news.
func (p *armProc) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("arm %s: %w", p.arm.Name, err)
	}
	return nil
}

// held waits until the arm stands still.
func (p *armProc) held(ctx context.Context) (*armReading, error) {
	n, err := p.next(ctx)
	if err != nil {
		return nil, err
	}
	if n.Held == nil {
		return nil, fmt.Errorf("arm %s came to its end before it was told to", p.arm.Name)
	}
	return n.Held, p.freeze()
}

// record waits for the arm's record.
func (p *armProc) record(ctx context.Context) (*results.Record, error) {
	for {
		n, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if n.Record != nil {
			return results.Decode(n.Record, "the record of arm "+p.arm.Name)
		}
	}
}

func (p *armProc) next(ctx context.Context) (armNews, error) {
	select {
	case n, ok := <-p.news:
		if !ok {
			return n, p.failure()
		}
		return n, nil
	case <-ctx.Done():
		return armNews{}, ctx.Err()
	}
}

// failure waits for the end of a process that has closed its files, and says what became of it.
func (p *armProc) failure() error {
	for range p.news { // until it is closed
	}
	how := "without a word"
	if p.err != nil {
		how = p.err.Error()
	}
	if said := p.said.text(); said != "" {
		how += ": " + said
	}
	return fmt.Errorf("the process of arm %s ended: %s", p.arm.Name, how)
}

// interrupt asks for the record of what there is, and waits for it.
func (p *armProc) interrupt(patience time.Duration) *results.Record {
	if p.signal(os.Interrupt) != nil || p.thaw() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rec, err := p.record(ctx)
	if err != nil {
		return nil
	}
	return rec
}

// kill ends the process at once, and waits for that.
func (p *armProc) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	p.wait()
}

// wait waits for the process to end and closes what belongs to it.
func (p *armProc) wait() error {
	for range p.news { // what it has still said
	}
	<-p.ended
	_ = p.orders.Close()
	return p.err
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

const lastWordsBytes = 2000

func (t *lastWords) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - lastWordsBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// text is its lines as one.
func (t *lastWords) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.buf), "?")), " ")
}
