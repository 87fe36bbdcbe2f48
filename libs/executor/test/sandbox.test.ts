/** What a sandbox holds, tried from inside; started as root and as an ordinary user. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sandboxFilter } from '../src/sandbox/seccomp.ts';
import { CALLS, CLONE3 } from '../src/system/system-calls.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import type { OwnerStage } from './sandbox-owner.ts';
import { makeWorld, OWN, titles, type World } from './sandbox-world.ts';

const lacking = await whySandboxLacks(undefined);
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (lacking !== null && notRun !== undefined) appendFileSync(notRun, `what a sandbox holds: ${lacking}\n`);

const PORT = 4567;

describe.runIf(lacking === null).each(titles())('a stage in a sandbox of %s', (title) => {
  let world: World;
  beforeAll(() => {
    world = makeWorld(title);
    mkdirSync(join(world.dataDir, 'runner'));
    writeFileSync(join(world.dataDir, 'api-key'), 'canary-key', { mode: 0o644 });
  });
  afterAll(() => world.remove());

  const uid = (index: number): number | undefined =>
    world.users === undefined ? undefined : world.users.first + index;
  function stage(script: string, more: Partial<OwnerStage> = {}): OwnerStage {
    return { key: 'mine', run: 'mine', script, uid: uid(0), network: 'none', ...more };
  }
  async function outputOf(script: string, more: Partial<OwnerStage> = {}): Promise<string> {
    const [result] = await world.run({ kind: 'sandbox', stages: [stage(script, more)] });
    expect(result?.exit.kind, JSON.stringify(result?.exit)).not.toBe('lost');
    return `${result?.stdout}${result?.stderr}`;
  }

  it('has no right, cannot get one, and is not root', async () => {
    const text = await outputOf(
      'id -u; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; cat /proc/self/setgroups',
    );
    expect(Number(text.split('\n')[0])).toBeGreaterThan(0);
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(text).toMatch(new RegExp(`${name}:\\s+0{16}\\n`));
    expect(text).toMatch(/NoNewPrivs:\s+1\nSeccomp:\s+2/);
  });

  it('is refused every call of the list, other namespaces, raw sockets, terminals that type, and other machines', async () => {
    const calls = CALLS[process.arch as 'x64' | 'arm64'];
    const numbers = Object.entries(calls.refused);
    const perl = [
      ...numbers.map(
        ([name, number]) =>
          `$r = syscall(${number}, 0, 0, 0, 0, 0, 0); print "${name} ", $r == -1 ? $!+0 : "done", "\\n";`,
      ),
      ...[0x20000, 0x10000000, 0x40000000, 0x20000000].map(
        (flags) =>
          `$r = syscall(${calls.clone}, ${flags} | 17, 0, 0, 0, 0); exit 0 if $r == 0; print "clone ", $r == -1 ? $!+0 : "done", "\\n";`,
      ),
      ...[0x20000, 0x10000000, 0x80].map(
        (flags) => `$r = syscall(${calls.unshare}, ${flags}); print "unshare ", $r == -1 ? $!+0 : "done", "\\n";`,
      ),
      `$r = syscall(${calls.ioctl}, 0, 0x5412, 0); print "TIOCSTI ", $!+0, "\\n";`,
      `$r = syscall(${calls.personality}, 0x40000); print "personality ", $r == -1 ? $!+0 : "done", "\\n";`,
      ...[2, 10].map(
        (family) => `$r = syscall(${calls.socket}, ${family}, 3, 1); print "raw ", $r == -1 ? $!+0 : "done", "\\n";`,
      ),
      `$r = syscall(${calls.socket}, 16, 3, 9); print "audit ", $r == -1 ? $!+0 : "done", "\\n";`,
      ...[17, 38, 40].map(
        (family) => `$r = syscall(${calls.socket}, ${family}, 2, 0); print "family ${family} ", $!+0, "\\n";`,
      ),
      `$r = syscall(${CLONE3}, 0, 0); print "clone3 ", $!+0, "\\n";`,
      ...[1, 2, 10, 16].map(
        (family) => `$r = syscall(${calls.socket}, ${family}, 2, 0); print "usual ", $r > 0 ? "done" : $!+0, "\\n";`,
      ),
    ].join('\n');
    const lines = (
      await outputOf(
        `cat >calls.pl <<'END'\n${perl}\nEND\nperl calls.pl; perl -e 'syscall(0x40000027)' || echo "x32 $?"`,
      )
    ).split('\n');
    const wanted = [
      ...numbers.map(([name]) => `${name} 1`),
      ...Array<string>(4).fill('clone 1'),
      ...Array<string>(3).fill('unshare 1'),
      'TIOCSTI 1',
      'personality 1',
      ...Array<string>(2).fill('raw 1'),
      'audit 1',
      ...[17, 38, 40].map((family) => `family ${family} 97`),
      'clone3 38',
      ...Array<string>(4).fill('usual done'),
      ...(process.arch === 'x64' ? ['x32 159'] : []),
    ];
    expect(lines.filter((line) => line !== '' && !line.startsWith('Bad system'))).toEqual(wanted);
  });

  it('sees its programs, its run, and nothing else of the machine', async () => {
    const text = await outputOf(
      `set +e; ls -A "$DATA" "$WORK/0"; cat "$DATA/api-key"; ls -A /home /root /run /srv /mnt /var/lib ${process.cwd()} /var/tmp; ls /proc | grep "^[0-9]" | tr "\\n" " "; tr "\\0" "\\n" </proc/1/environ; cat /etc/shadow; env`,
    );
    expect(text).not.toContain('canary');
    expect(text).not.toContain('of-the-owner');
    expect(text).not.toContain('package.json');
    expect(text).not.toMatch(/root:[^\n]*:/);
    expect(text).toContain('mine\n');
    expect((/^1 (\d+ )*$/m.exec(text) ?? [''])[0].trim().split(' ').length).toBeLessThan(6);
  });

  it('writes nowhere but to its run, its /tmp and its /dev/shm', async () => {
    const text = await outputOf(
      'set +e; for folder in / /usr /etc /home /run /dev /proc/sys/kernel /sys/devices/system/cpu "$DATA" /opt /var /tmp /dev/shm .; do touch "$folder/written" 2>/dev/null && echo "wrote $folder"; done; echo x >/proc/sys/kernel/core_pattern; echo 1 >/proc/sys/user/max_user_namespaces',
    );
    expect(text.split('\n').filter((line) => line.startsWith('wrote'))).toEqual([
      'wrote /tmp',
      'wrote /dev/shm',
      'wrote .',
    ]);
    expect(text.match(/Read-only|Permission denied|cannot create/g)?.length).toBeGreaterThanOrEqual(2);
  });

  it('has a /tmp and a folder that last for its run, and finds nothing of other runs of its key', async () => {
    const look = 'ls -A /tmp /dev/shm . "$WORK/0"';
    const [, again, other, between] = await world.run({
      kind: 'sandbox',
      stages: [
        stage('echo mine >/tmp/note; echo mine >/dev/shm/note; echo mine >note'),
        stage(`cat /tmp/note note; ${look}`),
        stage(look, { run: 'other' }),
        stage(`${look}; cat /tmp/note`),
      ],
    });
    expect(again?.stdout).toContain('mine\nmine\n');
    expect(other?.stdout).not.toContain('note');
    expect(other?.stdout).not.toContain('mine');
    expect(between?.stdout).toContain('mine');
  });

  it('reaches no process, file or socket of a stage that runs beside it, of its own key either', async () => {
    const victim =
      'echo secret >/tmp/note; echo secret >note; SECRET=canary-env sleep 3 & perl -MIO::Socket::UNIX -e \'IO::Socket::UNIX->new(Local => "\\0abstract", Listen => 1) or die; sleep 3\' & echo up; wait';
    const robber =
      'set +e; sleep 1; cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep canary-env; find / -xdev -name note 2>/dev/null; ls "$WORK/0"; kill -9 -1; perl -MIO::Socket::UNIX -e \'print IO::Socket::UNIX->new(Peer => "\\0abstract") ? "reached\\n" : "no socket\\n"\'';
    for (const key of ['mine', 'theirs']) {
      const [first, second] = await world.run({
        kind: 'sandbox',
        stages: [[stage(victim), stage(robber, { run: 'robber', key, uid: key === 'mine' ? uid(0) : uid(1) })]],
      });
      expect(first?.exit).toEqual({ kind: 'exit', code: 0 });
      expect(second?.stdout).not.toMatch(/canary|note|mine|reached/);
    }
  });

  it('has no way to its helper: neither by its memory, nor its descriptors, nor by a signal', async () => {
    const text = await outputOf(
      'set +e; ls -l /proc/1/fd; cat /proc/1/mem | head -c 1; (echo 0 >/proc/1/fd/3); (echo 0 >/proc/1/fd/5); kill -KILL 1; kill -STOP 1; kill -INT 1; kill -TERM 1; sleep 0.1; echo still; exit 3',
    );
    expect(text).toContain('still');
    expect(text).not.toMatch(/-> (pipe|socket)/);
    const [result] = await world.run({ kind: 'sandbox', stages: [stage('kill -INT 1 || true; exit 3')] });
    expect(result?.exit).toEqual({ kind: 'exit', code: 3 });
  });

  it('with `network: none` has loopback alone', async () => {
    const text = await outputOf(
      'cat /proc/net/dev | tail -n +3 | cut -d: -f1; perl -MIO::Socket::INET -e \'my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die; print IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) ? "own\\n" : "none\\n"\'',
    );
    expect(text.trim().split(/\s+/)).toEqual(['lo', 'own']);
  });
});

describe.runIf(lacking === null && process.getuid?.() === 0).each(titles())(
  'the network of a sandbox of %s',
  (title) => {
    let world: World;
    beforeAll(() => {
      world = makeWorld(title);
    });
    afterAll(() => world.remove());

    /** Which of these a stage reaches: what it prints is what it got. */
    async function reached(network: 'open' | 'public' | 'none', hosts: readonly string[]): Promise<string[]> {
      const script = `for host in ${hosts.join(' ')}; do echo "$host $(perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => "'$host':${PORT}", Timeout => 5) or exit; print <$s>')"; done`;
      const uid = world.users?.first;
      const [result] = await world.run({
        kind: 'sandbox',
        listenPort: PORT,
        deniedHosts: [OWN.denied],
        stages: [{ key: 'net', run: 'net', script, uid, network }],
      });
      expect(result?.exit).toEqual({ kind: 'exit', code: 0 });
      return (result?.stdout ?? '')
        .split('\n')
        .flatMap((line) => (line.endsWith(' hello') ? [line.split(' ')[0] ?? ''] : []));
    }
    /** Loopback, and what the stack knows loopback as: its gateway, its resolver, and other addresses of its network. */
    const LOOPBACK = [
      '127.0.0.1',
      '127.0.0.53',
      '0.0.0.0',
      '198.18.0.0',
      '198.18.0.2',
      '198.18.0.3',
      '198.18.0.4',
      '198.18.0.255',
    ];

    it('is open but for loopback, link-local addresses, broker and store', async () => {
      const hosts = [...LOOPBACK, OWN.open, OWN.private, OWN.linkLocal, OWN.denied];
      expect(await reached('open', hosts)).toEqual([OWN.open, OWN.private]);
    });

    it('has nothing private of a stage that is not trusted, nor any address of the machine', async () => {
      expect(await reached('public', [...LOOPBACK, ...Object.values(OWN)])).toEqual([]);
    });

    it('is none at all with `network: none`', async () => {
      expect(await reached('none', [...LOOPBACK, ...Object.values(OWN)])).toEqual([]);
    });

    it('does not open where a socket is bound to its device, and a name is asked of the resolver alone', async () => {
      const bound = [
        'perl -MSocket - <<"END"',
        `for my $host (qw(${OWN.linkLocal} ${OWN.denied} 198.18.0.3)) {`,
        '  socket(my $s, PF_INET, SOCK_STREAM, 0);',
        '  setsockopt($s, SOL_SOCKET, 25, pack("a16", "tap0")) or print "not bound ";',
        `  my $way = connect($s, sockaddr_in(${PORT}, inet_aton($host))) ? "reached $host" : "no way";`,
        '  print "$way\\n";',
        '}',
        'END',
      ].join('\n');
      const uid = world.users?.first;
      const [result] = await world.run({
        kind: 'sandbox',
        listenPort: PORT,
        deniedHosts: [OWN.denied],
        stages: [{ key: 'net', run: 'net', script: `${bound}\ncat /etc/resolv.conf`, uid }],
      });
      expect(result?.stdout).toBe('no way\nno way\nno way\nnameserver 198.18.0.3\n');
    });
  },
);

describe('a filter of system calls', () => {
  it('is there for the machines that Penstock runs on, and no other', () => {
    for (const architecture of ['x64', 'arm64'])
      expect((sandboxFilter(architecture)?.length ?? 0) / 8).toBeGreaterThan(100);
    expect(sandboxFilter('riscv64')).toBeUndefined();
  });
});
