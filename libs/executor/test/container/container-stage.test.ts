/** What a stage in a container has beyond any stage: its image, services beside it, limits, a network or none. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ContainerExecutor } from '../../src/container/container-executor.ts';
import type { StageExit, StagePlace, StageSpec } from '../../src/contract/port.ts';
import { RecordingSink } from '../../src/testing/executor-suite.ts';
import {
  containersOf,
  engineForTests,
  IMAGE,
  IMAGE_OF_SERVER,
  IMAGE_WITHOUT_SHELL,
} from '../../src/testing-containers/test-images.ts';

const engine = await engineForTests('images, services and limits of containers');
const user = process.getuid?.() === 0 ? { uid: 190_002, gid: 190_002 } : undefined;
const OWNER = `stages of ${process.pid}`;

const isRoot = process.getuid?.() === 0;
const hasLimits = isRoot || existsSync('/sys/fs/cgroup/cgroup.controllers');
const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
if (engine !== null && notRunFile !== undefined) {
  if (!hasLimits) appendFileSync(notRunFile, 'limits of containers: no control groups of version 2, and not root\n');
  if (!isRoot)
    appendFileSync(notRunFile, 'the public network of containers: a rootless one does not reach its machine anyway\n');
}

function mountsOn(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m', 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Of everything on this machine. */
function commandLines(): string {
  const lines = readdirSync('/proc').map((name) => {
    try {
      return /^\d+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, 'utf8') : '';
    } catch {
      return '';
    }
  });
  return lines.join('\n');
}

describe.skipIf(engine === null)('a stage in a container', () => {
  let executor: ContainerExecutor;
  let folder: string;
  beforeAll(() => {
    if (engine === null) return;
    folder = mkdtempSync(join(tmpdir(), 'penstock-containers-'));
    if (user !== undefined) chownSync(folder, user.uid, user.gid);
    executor = new ContainerExecutor({ engine, owner: OWNER });
  });
  afterAll(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function start(script: string, place: StagePlace, more: Partial<StageSpec> = {}) {
    const sink = new RecordingSink();
    const spec: StageSpec = {
      helperKey: 'key',
      commands: [{ script, bindings: {} }],
      env: {},
      cwd: folder,
      folders: [folder],
      timeoutMs: 60_000,
      graceMs: 200,
      user,
      place: { image: { name: IMAGE }, ...place },
      ...more,
    };
    return { stage: executor.start(spec, sink), sink };
  }

  async function run(
    script: string,
    place: StagePlace = {},
    more: Partial<StageSpec> = {},
  ): Promise<{ exit: StageExit; sink: RecordingSink }> {
    const { stage, sink } = start(script, place, more);
    return { exit: await stage.ended, sink };
  }

  describe('its image', () => {
    it('has its programs and its environment, and the stage its working folder', async () => {
      const { exit, sink } = await run('echo "$IN_IMAGE"; ls /www; echo made >made; id -u');
      expect(exit).toEqual({ kind: 'exit', code: 0 });
      expect(sink.text().split('\n').slice(0, 2)).toEqual(['yes', 'index.html']);
      expect(statSync(join(folder, 'made')).uid).toBe(user?.uid ?? process.getuid?.());
    });

    it('that is not to be had fails the stage with the reason image', async () => {
      const { exit } = await run('true', { image: { name: 'localhost/penstock-test-nothing:1' } });
      expect(exit).toMatchObject({ kind: 'unplaced', reason: 'image' });
      expect(exit).toHaveProperty('message', expect.stringContaining('localhost/penstock-test-nothing:1'));
    });

    it('without a shell is said plainly', async () => {
      const { exit, sink } = await run('true', { image: { name: IMAGE_WITHOUT_SHELL } });
      expect(exit).toEqual({ kind: 'exit', code: 127 });
      expect(sink.text('system')).toContain('there is no sh in its image');
    });

    it('has an entrypoint where the stage names one, which starts the shell', async () => {
      const { exit, sink } = await run('echo "$BY"', {
        image: { name: IMAGE, entrypoint: ['env', 'BY=entrypoint'] },
      });
      expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 0 }, 'entrypoint\n']);
      expect((await run('true', { image: { name: IMAGE, entrypoint: ['false'] } })).exit).toEqual({
        kind: 'exit',
        code: 126,
      });
    });

    it('is not found by the number that it has on this machine', async () => {
      const { exit } = await run('true', { image: { name: 'sha256:0123456789ab' } });
      expect(exit).toMatchObject({ kind: 'unplaced', reason: 'image' });
    });
  });

  it('has no right, gains none, and nothing that is set-user-id in what it writes', async () => {
    const { sink } = await run(
      "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; grep -E '(nosuid.*nodev|nodev.*nosuid)' /proc/mounts | cut -d' ' -f2; echo $$",
    );
    const text = sink.text();
    for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb']) expect(text).toMatch(new RegExp(`Cap${set}:\\s*0+\n`));
    expect(text).toMatch(/NoNewPrivs:\s*1\n/);
    expect(text).toMatch(/Seccomp:\s*2\n/);
    expect(text).toContain(`${folder}\n`);
    expect(text).toContain('/run/penstock\n');
  });

  it('finds nothing of its job by name once it runs, and its values in no argument of this machine', async () => {
    const secret = `hidden-${process.pid}`;
    const { stage, sink } = start(
      'ls /run/penstock; echo "$S" >/dev/null; echo up; read -r never',
      {},
      { env: { S: secret } },
    );
    await sink.until('up\n');
    const lines = commandLines();
    expect(lines).not.toContain(secret);
    stage.stop('cancelled');
    await stage.ended;
    expect(sink.text()).toBe('up\n');
  });

  describe('services', () => {
    const web = { name: 'web', image: { name: IMAGE_OF_SERVER }, env: {} };

    it('are reached by their names once they are ready, and print to streams of their own', async () => {
      const { exit, sink } = await run('wget -q -O - http://web:8080/index.html; hostname -i || true', {
        services: [{ ...web, ready: 'wget -q -O /dev/null http://127.0.0.1:8080/', readyTimeoutMs: 30_000 }],
      });
      expect(exit).toEqual({ kind: 'exit', code: 0 });
      expect(sink.text()).toContain('served\n');
      expect(sink.text('service:web')).toContain('response:200');
    });

    it('are reached without any other network too, and are several', async () => {
      const echo = (name: string, port: number) => ({
        name,
        image: { name: IMAGE, entrypoint: ['sh', '-c', `while :; do echo "$WHO" | nc -l -p ${port}; done`] },
        env: { WHO: name },
        ready: `nc -z 127.0.0.1 ${port} || netstat -ltn | grep -q :${port}`,
      });
      const { exit, sink } = await run('nc one 4001 </dev/null; nc two 4002 </dev/null; ip route | wc -l', {
        network: 'none',
        services: [echo('one', 4001), echo('two', 4002)],
      });
      expect(exit).toEqual({ kind: 'exit', code: 0 });
      expect(sink.text()).toMatch(/(one\n)?(two\n)?0\n$/);
    });

    it('that are never ready fail the stage with the reason service, and it never starts', async () => {
      const { exit } = await run('echo started >started-unready', {
        services: [{ ...web, ready: 'exit 3', readyTimeoutMs: 700 }],
      });
      expect(exit).toEqual({
        kind: 'unplaced',
        reason: 'service',
        // On a busy machine the engine starts no command in that time.
        message: expect.stringMatching(
          /^the service web was not ready within 0\.7 s: .* (?:exit code 3|did not end)$/u,
        ),
      });
      expect((await run('test ! -e started-unready')).exit).toEqual({ kind: 'exit', code: 0 });
    });

    it('that end before they are ready do too', async () => {
      const { exit, sink } = await run('true', {
        services: [{ ...web, image: { name: IMAGE, entrypoint: ['sh', '-c', 'echo broken; exit 1'] }, ready: 'false' }],
      });
      expect(exit).toMatchObject({
        kind: 'unplaced',
        reason: 'service',
        message: expect.stringContaining('ended before it was ready'),
      });
      expect(sink.text('service:web')).toBe('broken\n');
    });

    it('whose image cannot be had fail it with the reason image', async () => {
      const { exit } = await run('true', {
        services: [{ ...web, image: { name: 'localhost/penstock-test-nothing:1' } }],
      });
      expect(exit).toMatchObject({
        kind: 'unplaced',
        reason: 'image',
        message: expect.stringContaining('service web'),
      });
    });

    it('end with a stage that is stopped while it waits for them', async () => {
      const { stage, sink } = start('true', {
        services: [{ ...web, image: { name: IMAGE, entrypoint: ['sh', '-c', 'echo up; sleep 600'] }, ready: 'false' }],
      });
      await sink.until('up\n', 'service:web');
      stage.stop('cancelled');
      expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
    });
  });

  describe.runIf(hasLimits)('limits', () => {
    it('of memory end it as out of memory', async () => {
      const { exit } = await run('head -c 200000000 /dev/zero | tail -c 150000000 >/dev/null', {
        resources: { memoryBytes: 32 * 1024 ** 2 },
      });
      expect(exit).toMatchObject({ kind: 'signal', oom: true });
    });

    it('of processes hold for every stage', async () => {
      const { sink } = await run('cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null || true');
      expect(sink.text()).toBe('4096\n');
    });

    it('of processors are the control group’s', async () => {
      const { sink } = await run('cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || true', {
        resources: { cpu: 0.5 },
      });
      expect(sink.text()).toMatch(/^50000( 100000)?\n$/);
    });
  });

  describe('the disk', () => {
    const MIB = 1024 ** 2;
    const limits = { memoryBytes: 0, processes: 0, diskBytes: 40 * MIB, inodes: 4_000, openFiles: 1_024 };

    async function runBounded(
      script: string,
      services: StagePlace['services'] = [],
    ): Promise<[StageExit, RecordingSink]> {
      if (engine === null) throw new Error('no engine');
      const here = mkdtempSync('/var/tmp/penstock-container-disk-');
      // Of its own, so that nobody else fills it or makes room on it meanwhile.
      const hasOwn = isRoot && mountsOn(here);
      if (user !== undefined) chownSync(here, user.uid, user.gid);
      const bounded = new ContainerExecutor({ engine, owner: OWNER, limits });
      try {
        const sink = new RecordingSink();
        const spec = { helperKey: 'key', commands: [{ script, bindings: {} }], env: {}, cwd: here, folders: [here] };
        const place = { image: { name: IMAGE }, services };
        const exit = await bounded.start({ ...spec, timeoutMs: 60_000, user, place }, sink).ended;
        return [exit, sink];
      } finally {
        await bounded.close();
        if (hasOwn) execFileSync('umount', ['-l', here]);
        rmSync(here, { recursive: true, force: true });
      }
    }

    it('takes no file beyond its bound, and many end the stage, which is told', async () => {
      const [one] = await runBounded(`head -c ${60 * MIB} /dev/zero >file`);
      expect(one).not.toEqual({ kind: 'exit', code: 0 });
      const [many, sink] = await runBounded(
        `for i in 1 2 3 4; do head -c ${20 * MIB} /dev/zero >file-$i; done; sync; sleep 50`,
      );
      expect(many).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
      expect(sink.text('system')).toContain('bytes of the disk');
      expect((await runBounded('echo next'))[1].text()).toBe('next\n');
    });

    // The image's own file system lies on another disk than the folder here.
    it('of the image’s own file system is bounded as well, for the stage and for its services', async () => {
      const [large, told] = await runBounded(
        `for i in 1 2 3 4; do head -c ${20 * MIB} /dev/zero >/tmp/file-$i; done; sleep 50`,
      );
      expect(large).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
      expect(told.text('system')).toContain('bytes of the disk');
      const files = 'i=0; while [ $i -lt 5000 ]; do : >/tmp/file-$i; i=$((i+1)); done; sleep 50';
      const [many, toldMany] = await runBounded(files);
      expect(many).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
      expect(toldMany.text('system')).toContain('files and folders; 4000 are allowed');
      const [ofService, toldOfService] = await runBounded('sleep 50', [
        { name: 'db', image: { name: IMAGE, entrypoint: ['sh', '-c', files] }, env: {} },
      ]);
      expect(ofService).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
      expect(toldOfService.text('system')).toContain('files and folders');
    });
  });

  it.runIf(isRoot)(
    'with a public network reaches none of this machine’s own addresses, and its services all the same',
    async () => {
      const { createServer } = await import('node:net');
      const server = createServer((socket) => socket.end('reached'));
      await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
      const { port } = server.address() as { port: number };
      const way = `gateway=$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'); nc -w 2 "$gateway" ${port} </dev/null || echo refused`;
      try {
        expect((await run(way, { network: 'public' })).sink.text()).toBe('refused\n');
        // Else the first would show nothing.
        expect((await run(way)).sink.text()).toContain('reached');
      } finally {
        server.close();
      }
    },
  );

  it('with network none has nothing but loopback', async () => {
    const { sink } = await run("ip -o link | cut -d' ' -f2; ip route", { network: 'none' });
    expect(sink.text()).toBe('lo:\n');
  });

  it('leaves no container behind, whatever became of it', () => {
    expect(containersOf(engine, OWNER)).toEqual([]);
  });
});
