# SPDX-License-Identifier: MIT
"""Goroutines in gdb, of a live process or a core file.

  info goroutines        one line each: id, state, function, where it stands
  goroutine N            the same for one, and where it was created
  goroutine N COMMAND    a command in its innermost frame: goroutine 7 bt, goroutine 7 info locals
  goroutine all COMMAND  for each of them

gdb loads this by itself with an installed libpirn.so (auto-load); for a program that is linked with
libpirn.a: source /usr/share/pirn/pirn-gdb.py. It needs pirn's debug information, not the program's.

A goroutine that is on a thread is shown there. One that has left its stack is given to gdb by an unwinder:
while a command runs for it, its registers, which arch_switch has pushed on its stack, are those of the
caller of the frame that the selected thread is in. No register is written, so it works on core files too.
"""
import gdb
import gdb.unwinder

IDLE, RUNNABLE, RUNNING, WAITING = range(4)  # enum g_status
SITE_PC, BOUND = 32, 128                     # enum g_flags

# What arch_switch leaves on the stack: words from sp, and how many in all.
FRAMES = {
    'i386:x86-64': (('r15', 'r14', 'r13', 'r12', 'rbx', 'rbp', 'rip'), 7, 'rsp', 'rip', 'rbp'),
    'aarch64': (tuple(f'x{i}' for i in range(19, 31)), 20, 'sp', 'pc', 'x29'),
}


def symbol(name, file, is_static=False):
    """A variable of pirn's, whatever the program calls its own."""
    if is_static:
        found = gdb.lookup_static_symbols(name)
    else:
        found = [s for s in [gdb.lookup_global_symbol(name)] if s]
        found += gdb.lookup_static_symbols(name)  # in the archive they are local
    for s in found:
        if s.symtab and s.symtab.filename.endswith((file, 'src/sched/gmp.h')):
            return s.value()
    raise gdb.GdbError('There is no debug information of pirn here.')


def number(value):
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value['v']  # an atomic
    return int(value.cast(gdb.lookup_type('unsigned long')))


def pointer(value, struct):
    return gdb.Value(number(value)).cast(gdb.lookup_type('struct ' + struct).pointer())


class Goroutine:
    def __init__(self, g):
        self.g = g
        self.id = int(g['id'])
        self.status = number(g['status'])
        self.flags = int(g['flags'])

    @property
    def state(self):
        if self.status == WAITING:
            return symbol('wait_reason_names', 'deadlock.c')[int(self.g['reason'])].string()
        if self.status == RUNNABLE and self.flags & BOUND and self.thread():
            return 'preempted'
        return {RUNNABLE: 'runnable', RUNNING: 'running'}.get(self.status, 'unknown')

    @property
    def name(self):
        extra = self.g['extra']
        return extra['name'].string() if number(extra) else ''

    @property
    def labels(self):
        """As reports show them."""
        extra = self.g['extra']
        if not number(extra):
            return ''
        size = extra['labels'].type.range()[1] + 1
        text = bytes(int(extra['labels'][i]) & 255 for i in range(size))
        words = text.decode(errors='replace').split('\0')
        pairs = []
        while len(words) > 1 and words[0]:
            pairs.append(f'{words[0]}={words[1]}')
            words = words[2:]
        return '{' + ', '.join(pairs) + '}' if pairs else ''

    @property
    def title(self):
        """Its function, name and labels."""
        name = f'"{self.name}"' if self.name else ''
        return ' '.join(word for word in (self.site[0], name, self.labels) if word)

    @property
    def site(self):
        """Its function and where it was created, as far as that is known."""
        site = number(self.g['site'])
        if not site or self.flags & SITE_PC:
            where = gdb.find_pc_line(site - 1) if site else None
            return '', f'{where.symtab.filename}:{where.line}' if where and where.symtab else ''
        fn = self.g['site'].string()
        return fn, (self.g['site'] + len(fn.encode()) + 1).string()

    def m(self):
        """The thread that it is on, as pirn knows it."""
        m = pointer(symbol('sched', 'init.c')['allm'], 'm')
        while number(m):
            if number(m['curg']) == number(self.g):
                return m
            m = m['all']
        return None

    def thread(self):
        m = self.m() if self.status == RUNNING or self.flags & BOUND else None
        tid = number(m['tid']) if m is not None else 0
        for t in gdb.selected_inferior().threads():
            if t.ptid[1] == tid or (t.ptid[1] == 0 and t.ptid[0] == tid):
                return t
        return None

    def begun(self):
        return number(self.g['stack_hi']) != 0


def goroutines():
    slab = pointer(symbol('slabs', 'g.c', True), 'slab')
    g_type = gdb.lookup_type('struct g')
    found = []
    while number(slab):
        first = (slab + 1).cast(g_type.pointer())
        for i in range(number(slab['ncut'])):
            if number((first + i)['status']) != IDLE:
                found.append(Goroutine(first + i))
        slab = slab['next']
    return sorted(found, key=lambda g: g.id)


class Unwinder(gdb.unwinder.Unwinder):
    """Makes a goroutine that has left its stack the caller of the innermost frame."""

    def __init__(self):
        super().__init__('pirn')
        self.goroutine = None

    def __call__(self, pending):
        if self.goroutine is None or pending.level() != 0:
            return None
        names, words, sp_name, pc_name, _ = FRAMES[pending.architecture().name()]
        long = gdb.lookup_type('unsigned long')
        sp = self.goroutine.g['sp'].cast(long)
        info = pending.create_unwind_info(FrameId(sp, pending.read_register(pc_name)))
        for i, name in enumerate(names):
            value = (sp + 8 * i).cast(long.pointer()).dereference()
            info.add_saved_register(name, value)
            if name == 'x30':
                info.add_saved_register(pc_name, gdb.Value(int(value) & (1 << 48) - 1).cast(long))
        info.add_saved_register(sp_name, sp + 8 * words)
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


unwinder = Unwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


class Selected:
    """Inside, the selected frame is the innermost of the goroutine; .shift says how many are not its own."""

    def __init__(self, goroutine):
        self.goroutine = goroutine
        self.shift = 0

    def __enter__(self):
        self.thread, self.frame = gdb.selected_thread(), gdb.selected_frame()
        on = self.goroutine.thread()
        if on is not None:
            on.switch()
            gdb.newest_frame().select()
            return self
        if not self.goroutine.begun():
            raise gdb.GdbError(f'Goroutine {self.goroutine.id} has not begun.')
        unwinder.goroutine = self.goroutine
        gdb.invalidate_cached_frames()
        frame = gdb.newest_frame().older()
        if frame is None:
            self.__exit__()
            raise gdb.GdbError('gdb can not see its stack.')
        frame.select()
        self.shift = 1
        return self

    def __exit__(self, *_):
        if unwinder.goroutine is not None:
            unwinder.goroutine = None
            gdb.invalidate_cached_frames()
        self.thread.switch()
        try:
            self.frame.select()
        except gdb.error:
            pass  # the frames have been made anew


def backtrace(command, shift):
    """The output of bt, without the frame that is not its own."""
    text = gdb.execute(command, to_string=True)
    if not shift:
        return text
    lines, out = text.splitlines(), []
    for line in lines:
        head = line.split(None, 1)[0] if line.strip() else ''
        if head[:1] == '#' and head[1:].isdigit():
            level = int(head[1:]) - shift
            out.append(f'#{level:<3}' + line[max(4, len(head)):] if level >= 0 else None)
        elif out and out[-1] is not None:
            out.append(line)
    return ''.join(f'{line}\n' for line in out if line is not None)


def place(goroutine):
    """Its first frame that is neither pirn's nor libc's."""
    try:
        with Selected(goroutine):
            frame = gdb.selected_frame()
            while frame is not None:
                sal, name = frame.find_sal(), frame.name()
                file = sal.symtab.filename if sal and sal.symtab else ''
                own = any(f'src/{d}/' in file for d in ('sched', 'sync', 'time', 'ctx', 'io', 'arch', 'panic'))
                own = own or '/libc.so' in (gdb.solib_name(frame.pc()) or '')
                if name and not own and file:
                    return f'{name} at {file}:{sal.line}'
                frame = frame.older()
    except (gdb.error, gdb.GdbError):
        pass
    return ''


class InfoGoroutines(gdb.Command):
    """List goroutines: id, state, function, name, where it stands."""

    def __init__(self):
        super().__init__('info goroutines', gdb.COMMAND_STACK)

    def invoke(self, arg, from_tty):
        for g in goroutines():
            on = g.thread()
            where = place(g) if g.begun() else 'not begun'
            print(f'{"*" if on else " "} {g.id:<6} {g.state:<16} {g.title}'
                  + (f' (thread {on.num})' if on else '') + (f'  {where}' if where else ''))


class GoroutineCommand(gdb.Command):
    """goroutine N|all [COMMAND]: run a command in the innermost frame of a goroutine, such as bt."""

    def __init__(self):
        super().__init__('goroutine', gdb.COMMAND_STACK)

    def invoke(self, arg, from_tty):
        which, _, command = arg.partition(' ')
        command = command.strip()
        if not which:
            raise gdb.GdbError('goroutine N|all [COMMAND]')
        every = goroutines()
        if which != 'all':
            n = int(gdb.parse_and_eval(which))
            every = [g for g in every if g.id == n]
            if not every:
                raise gdb.GdbError(f'There is no goroutine {n}.')
        for g in every:
            self.head(g)
            if command:
                self.run(g, command, which == 'all')

    @staticmethod
    def head(g):
        at = g.site[1]
        creator = int(g.g['creator'])
        by = f', created by goroutine {creator}' if creator else ''
        print(f'Goroutine {g.id} [{g.state}] {g.title}{by}' + (f' at {at}' if at and creator else ''))

    @staticmethod
    def run(g, command, go_on):
        try:
            with Selected(g) as s:
                if command.split()[0] in ('bt', 'backtrace', 'where'):
                    print(backtrace(command, s.shift), end='')
                else:
                    gdb.execute(command)
        except (gdb.error, gdb.GdbError) as e:
            if not go_on:
                raise gdb.GdbError(str(e))
            print(e)


InfoGoroutines()
GoroutineCommand()
